/** A file or folder of the service by its path from the root: of the sources, or of dist/ in a build, whose shared files lie in dist/core/platform/. */
export function fileOf(path: string): URL {
  return new URL(`../../${path}`, import.meta.url);
}
