import {
  askAuthorization,
  decideAuthorization,
  describeServer,
  issueAccess,
  registerClient,
} from "../core/account/face.ts";
import {
  authorizationForm,
  authorizationPage,
  clientRegistration,
  issuedToken,
  registeredClient,
  tokenRequest,
} from "../schemas/account.ts";
import { object } from "../schemas/schema.ts";
import { authorizationView, oauthFailureView } from "./authorization-view.ts";
import { failureView } from "./failure-view.ts";
import { anyone, type Row, route } from "./route.ts";

const said = { invalid_request: "appUnknown" } as const;
const person = {
  headerInputs: ["cookie"],
  errorView: failureView,
  view: authorizationView,
  said,
  hidden: true,
} as const;
const client = { errorView: oauthFailureView, hidden: true };

/** The authorization server for MCP clients, if the built-in sign-in is on (docs/reference.md, "MCP sign-in"). */
export const authorizationRows: Row[] = [
  route("GET /.well-known/oauth-authorization-server", anyone, object({}), describeServer, {
    headers: { "Cache-Control": "public, max-age=3600" },
    hidden: true,
  }),
  route("POST /oauth/register", anyone, clientRegistration, registerClient, {
    ...client,
    status: 201,
    returns: registeredClient,
  }),
  route("GET /oauth/authorize", anyone, authorizationPage, askAuthorization, person),
  route("POST /oauth/authorize", anyone, authorizationForm, decideAuthorization, { ...person, accepts: "form" }),
  route("POST /oauth/token", anyone, tokenRequest, issueAccess, { ...client, accepts: "form", returns: issuedToken }),
];
