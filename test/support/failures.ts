/** What a reporter prints about failed tests, so that the end of a long output repeats it. */

/** Enough for the title, the error and its stack of three failed tests. */
const MOST_LINES = 80

/**
 * The lines from `N failing` on, at most 80: mocha and Hardhat print there the title, the error and the stack of each failed test. The
 * last lines if there is none: the process ended before its reporter could print any.
 */
export function failuresIn(lines: readonly string[]): readonly string[] {
  const start = lines.findIndex((line) => /^ {2}\d+ failing\b/.test(line))
  return start === -1 ? lines.slice(-MOST_LINES) : lines.slice(start, start + MOST_LINES)
}
