/** A figure, its required bar, and its comparison. */
export interface BenchRow {
  name: string;
  value: number;
  unit: string;
  bar?: string;
  baseline?: string;
}

/** The value below which a share of the values is; NaN without any. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
