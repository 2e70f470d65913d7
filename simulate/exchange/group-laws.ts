/** Laws that every scenario checks on the groups of its journal. */
import type { Group } from '../../keeper/engine/ports.ts'

/** Violations a run reports in full. */
export const MOST_REPORTED = 10

/** Groups are numbered without gaps, and tokens never decrease. */
export function oneOwner(groups: readonly Group<unknown>[]): string[] {
  return groups.flatMap(({ number, token }, at) => {
    const before = groups[at - 1]
    const isNext = number === at + 1 && (before === undefined || before.token <= token)
    return isNext ? [] : [`one-owner: group ${number} of token ${token} at place ${at + 1}`]
  })
}
