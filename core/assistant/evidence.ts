/** A piece of public text that an answer may rest on. */
export interface Evidence {
  kind: "page" | "kb_doc";
  /** Title of the page or document. */
  title: string;
  /** Public address of the page; null for a knowledge document. */
  url: string | null;
  /** True for another published page of the same handle. */
  related: boolean;
  /** Headings above the text, from the outermost, joined by ` › `; empty without any. */
  heading: string;
  /** An exact piece of the public text. */
  text: string;
  /** Rank score of the retrieval; higher is better, comparable within one question only. */
  score: number;
}
