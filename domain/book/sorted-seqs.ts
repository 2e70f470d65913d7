/** Ascending lists of seqs. New orders have the largest seq, so adding one is nearly always a push. */
import type { Seq } from '../units.ts'
import { lowerBound } from './lower-bound.ts'

/** Adds a seq that the list does not have. */
export function addSeq(seqs: Seq[], seq: Seq): void {
  const last = seqs.at(-1)
  if (last === undefined || last < seq) seqs.push(seq)
  else seqs.splice(lowerBound(seqs, seq), 0, seq)
}

/** Removes a seq; has no effect if the list does not contain it. */
export function removeSeq(seqs: Seq[], seq: Seq): void {
  const at = lowerBound(seqs, seq)
  if (seqs[at] === seq) seqs.splice(at, 1)
}
