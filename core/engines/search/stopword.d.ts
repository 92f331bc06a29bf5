/** The part of the untyped package `stopword` in use: its list of English stop words, lower case. */
declare module "stopword" {
  export const eng: string[];
}
