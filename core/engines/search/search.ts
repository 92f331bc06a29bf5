/** What other modules may import from search. */
export { chunk, type ChunkPiece } from "./chunking.ts";
export { openIndex } from "./open-index.ts";
export { snippets } from "./snippets.ts";
export { chunkFields, normalizeTags, readLanguages, tagSeparator } from "./stored.ts";
