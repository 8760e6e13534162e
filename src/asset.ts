/**
 * The URL of a file that the program reads: `path` is from src, or from dist, where the build copies it. The build joins this
 * module with others in files that stand in dist itself, so no other module asks where it is.
 */
export function asset(path: string): URL {
  return new URL(path, import.meta.url);
}
