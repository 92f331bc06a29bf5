/** Reported as `modelId` where no model is configured. */
export const embeddedAnswerer = "embedded-extractive";
