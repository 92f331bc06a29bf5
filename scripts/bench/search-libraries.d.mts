/** Search libraries over title and text: documents in, then a question to the best ids. */
export const libraries: Record<
  string,
  (documents: readonly { id: string; title: string; text: string }[]) => (question: string) => string[]
>;
