import type { ProviderKey } from "../../../../schemas/integrations.ts";
import { caldav } from "./caldav.ts";
import { google } from "./google.ts";
import { microsoft } from "./microsoft.ts";
import type { Provider } from "./provider.ts";
import { stripe } from "./stripe.ts";
import { zoom } from "./zoom.ts";

/** Every supported provider: the one place that lists them. */
export const providers: Record<ProviderKey, Provider> = { google, microsoft, caldav, zoom, stripe };
