/** Search libraries over title and text: documents first, then the best ids for a question. */
export const libraries: Record<
  string,
  (documents: readonly { id: string; title: string; text: string }[]) => (question: string) => string[]
>;
