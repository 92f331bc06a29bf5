/**
 * The URL of a file or folder, by its path from the root of the sources or of dist/. In a build, the shared chunks are in
 * dist/core/platform/.
 */
export function fileOf(path: string): URL {
  return new URL(`../../${path}`, import.meta.url);
}
