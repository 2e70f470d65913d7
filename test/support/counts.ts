/** Adds up the numbers of tests that mocha and Hardhat print. */
export interface Counts {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

export const NONE: Counts = { passed: 0, failed: 0, skipped: 0 }

const OUTCOMES = { passing: 'passed', failing: 'failed', pending: 'skipped' } as const

export const addCounts = (one: Counts, other: Counts): Counts => ({
  passed: one.passed + other.passed,
  failed: one.failed + other.failed,
  skipped: one.skipped + other.skipped,
})

/**
 * The counts in one line of a reporter's output. Mocha indents its closing lines by two spaces. Hardhat prints one more
 * closing line per outcome, such as `3 passing (1 solidity, 2 mocha)`, of which only the Solidity tests are not in
 * mocha's lines.
 */
export function countsOf(line: string): Counts {
  const mocha = /^ {2}(\d+) (passing|failing|pending)\b/.exec(line)
  const solidity = /^\d+ (passing|failing) \(.*?\b(\d+) solidity/.exec(line)
  if (mocha) return { ...NONE, [OUTCOMES[mocha[2] as keyof typeof OUTCOMES]]: Number(mocha[1]) }
  if (solidity) return { ...NONE, [OUTCOMES[solidity[1] as keyof typeof OUTCOMES]]: Number(solidity[2]) }
  return NONE
}

export function closingLine({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}
