import notes from "./fields.json" with { type: "json" };

/** What a field means, and the example that requests and answers show. */
export type FieldNote = readonly [description: string, example?: unknown];

/**
 * Notes on fields for the OpenAPI document and the tools: by name if the name always means the same, else by `Shape.name`, which
 * also counts for what `createShape` and `updateShape` take, or by `operation.name`.
 */
export const fields = notes as unknown as Record<string, FieldNote>;
