/** Okapi BM25 with the usual parameters (Robertson and Zaragoza 2009). */
const K1 = 1.2;
const B = 0.75;

/** The factor of a term that `frequency` of all documents hold: the rarer, the higher; never negative. */
export function rarity(documents: number, frequency: number): number {
  return (K1 + 1) * Math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5));
}

/** What a document of this length damps its terms by: a term found n times counts n / (n + damping). */
export function damping(length: number, averageLength: number): number {
  return K1 * (1 - B + (B * length) / averageLength);
}
