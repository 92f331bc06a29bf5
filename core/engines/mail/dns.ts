import { Buffer } from "node:buffer";
import { randomInt } from "node:crypto";
import { createSocket, type RemoteInfo } from "node:dgram";
import { getServers } from "node:dns";
import { lookup } from "node:dns/promises";
import { on } from "node:events";
import { connect, isIP } from "node:net";
import { addAbortSignal } from "node:stream";
import packet, { type DecodedPacket, type MxAnswer, type TxtAnswer } from "dns-packet";
import type { Env } from "../../platform/env.ts";

/** A DNS answer: values, definitely none, or unknown (timeout, SERVFAIL, refusal). */
export type DnsAnswer = { kind: "found"; values: string[] } | { kind: "none" } | { kind: "unknown"; error: string };

/** Queries the TXT or MX values of a name; an MX value is preference and host in lower case. */
export type AskDns = (type: "TXT" | "MX", name: string) => Promise<DnsAnswer>;

interface Server {
  address: string;
  port: number;
}

/** Ms to wait for a server, and rounds through all servers. */
const TIMEOUT_MS = 2500;
const MAX_ROUNDS = 2;
/** Bytes of a UDP answer (RFC 6891); larger ones come over TCP. */
const MAX_UDP_BYTES = 1232;

/**
 * A resolver that queries the configured or the system's servers directly. Whether a name is definitely absent depends on the response
 * code, which the resolvers of the runtimes don't report consistently.
 */
export async function openDns({ DNS_SERVERS }: Pick<Env, "DNS_SERVERS">): Promise<AskDns> {
  const servers = await Promise.all((DNS_SERVERS.length > 0 ? DNS_SERVERS : getServers()).map(serverOf));
  return async (type, name) => {
    let error = "no server";
    for (const server of Array(MAX_ROUNDS).fill(servers).flat() as Server[]) {
      const answer = await askServer(server, type, name);
      if (answer.kind !== "unknown") return answer;
      error = answer.error;
    }
    return { kind: "unknown", error };
  };
}

async function askServer(server: Server, type: "TXT" | "MX", name: string): Promise<DnsAnswer> {
  const question: Question = { id: randomInt(65_536), type, name };
  const query = packet.encode({
    type: "query",
    id: question.id,
    flags: packet.RECURSION_DESIRED,
    questions: [{ type, name }],
    additionals: [{ type: "OPT", name: ".", udpPayloadSize: MAX_UDP_BYTES, flags: 0, options: [] } as never],
  });
  try {
    const answer = await overUdp(server, query, question);
    return valuesIn(answer.flag_tc ? await overTcp(server, query, question) : answer, type);
  } catch (error) {
    return { kind: "unknown", error: (error as NodeJS.ErrnoException).code ?? (error as Error).message };
  }
}

interface Question {
  id: number;
  type: "TXT" | "MX";
  name: string;
}

/** Only NXDOMAIN, and an answer without the type from an authoritative or recursive server, mean that there is no value. */
function valuesIn(answer: DecodedPacket, type: "TXT" | "MX"): DnsAnswer {
  const { rcode } = answer as DecodedPacket & { rcode: string };
  if (rcode === "NXDOMAIN") return { kind: "none" };
  if (rcode !== "NOERROR") return { kind: "unknown", error: rcode };
  const values = (answer.answers ?? []).flatMap((one) =>
    one.type === type ? [type === "TXT" ? text(one as TxtAnswer) : host(one as MxAnswer)] : [],
  );
  if (values.length > 0) return { kind: "found", values };
  return answer.flag_aa || answer.flag_ra ? { kind: "none" } : { kind: "unknown", error: "REFERRAL" };
}

/** A value over 255 bytes comes in chunks to be joined (RFC 7208, section 3.3). */
function text({ data }: TxtAnswer): string {
  return [data]
    .flat()
    .map((chunk) => Buffer.from(chunk as string | Buffer).toString("utf8"))
    .join("");
}

function host({ data: { preference, exchange } }: MxAnswer): string {
  return `${preference ?? 0} ${exchange.toLowerCase().replace(/\.$/, "")}`;
}

/** Queries from its own socket, whose random port makes forged answers harder; unrelated answers are ignored. */
async function overUdp(server: Server, query: Buffer, question: Question): Promise<DecodedPacket> {
  const socket = createSocket(isIP(server.address) === 6 ? "udp6" : "udp4");
  try {
    const messages = on(socket, "message", { signal: AbortSignal.timeout(TIMEOUT_MS) });
    socket.send(query, server.port, server.address);
    for await (const [bytes, { address }] of messages as AsyncIterable<[Buffer, RemoteInfo]>) {
      const answer = address === server.address ? answerTo(question, bytes) : undefined;
      if (answer) return answer;
    }
    throw new Error("The socket was closed.");
  } finally {
    socket.close();
  }
}

/** The same over TCP (RFC 7766), with a length before each message: one message of at most 64 KB; the rest is ignored. */
async function overTcp(server: Server, query: Buffer, question: Question): Promise<DecodedPacket> {
  const socket = connect({ host: server.address, port: server.port });
  addAbortSignal(AbortSignal.timeout(TIMEOUT_MS), socket);
  socket.write(Buffer.concat([Buffer.from([query.length >> 8, query.length & 255]), query]));
  let bytes = Buffer.alloc(0);
  for await (const part of socket) {
    bytes = Buffer.concat([bytes, part as Buffer]);
    if (bytes.length >= 2 && bytes.length >= 2 + bytes.readUInt16BE(0)) break;
  }
  const answer = answerTo(question, bytes.subarray(2));
  if (answer === undefined) throw new Error("The message is no answer.");
  return answer;
}

/** The answer in a message, if id and question match; undefined for anything else, which anybody may send. */
function answerTo({ id, type, name }: Question, bytes: Buffer): DecodedPacket | undefined {
  try {
    const answer = packet.decode(bytes);
    const echoed = answer.questions?.[0];
    const isSame = echoed?.type === type && echoed.name.toLowerCase() === name.toLowerCase();
    return answer.type === "response" && answer.id === id && isSame ? answer : undefined;
  } catch {
    // The package throws for malformed messages.
    return undefined;
  }
}

/** A server by address and port; the default port is 53. */
async function serverOf(server: string): Promise<Server> {
  const [, named = server, port] = isIP(server) ? [] : (/^(.*?)(?::(\d+))?$/.exec(server) ?? []);
  const bare = named.replace(/^\[|\]$/g, "");
  const { address } = isIP(bare) ? { address: bare } : await lookup(bare);
  return { address, port: Number(port ?? 53) };
}
