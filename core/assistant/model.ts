/** Reported as `modelId` if no model is configured. */
export const embeddedAnswerer = "embedded-extractive";
