import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import {
  allAttacks,
  checkDegradation,
  checkRefusal,
  connected,
  idleAttacks,
  openHostileStage,
  refusals,
} from "../fixtures/hostile-stage.ts";

/** The promise is 500 ms; a machine that is slow with everything gets more. */
const mostFor = (calm: number): number => Math.max(500, 4 * calm);

t.test("a hostile calendar server is refused with its reason in 5 s and delays no web process", async (t) => {
  const stage = await openHostileStage(t);
  const credentialId = await connected(stage);
  const calm = (await stage.slowestHealth(() => sleep(1500))).ms;
  const isQuick = (health: number, name: string): unknown =>
    t.ok(health < mostFor(calm), `${name}: healthz took ${Math.round(health)} ms, ${Math.round(calm)} in calm`);
  const busy = allAttacks.filter((name) => !idleAttacks.includes(name));
  for (const name of busy)
    for (const at of refusals(stage, credentialId)) isQuick(await checkRefusal(t, stage, name, at), name);
  for (const name of busy)
    for (const step of ["sync", "objects"] as const)
      isQuick(await checkDegradation(t, stage, { name, step, credentialId }), name);
  for (const name of idleAttacks) isQuick(await checkDegradation(t, stage, { name, step: "sync", credentialId }), name);
  t.match(await stage.service.web.end(), { code: 0 }, "SIGTERM ends the process in order");
});
