/** What other modules may import from search. */
export { type ChunkPiece, chunk } from "./chunking.ts";
export { lessonCards, withoutLessonCards } from "./lesson-cards.ts";
export { openIndex } from "./open-index.ts";
export { snippets } from "./snippets.ts";
export { chunkFields, normalizeTags, readLanguages, tagSeparator } from "./stored.ts";
