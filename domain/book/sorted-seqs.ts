/** Ascending lists of seqs. New orders have the largest seq, so adding one is nearly always a push. */
import type { Seq } from '../units.ts'

/** Adds a seq that the list does not have. */
export function addSeq(seqs: Seq[], seq: Seq): void {
  const last = seqs.at(-1)
  if (last === undefined || last < seq) seqs.push(seq)
  else seqs.splice(indexOf(seqs, seq), 0, seq)
}

/** Does nothing if the list does not have the seq. */
export function removeSeq(seqs: Seq[], seq: Seq): void {
  const at = indexOf(seqs, seq)
  if (seqs[at] === seq) seqs.splice(at, 1)
}

/** The index of the seq, or the index at which it would be inserted. */
function indexOf(seqs: readonly Seq[], seq: Seq): number {
  let low = 0
  let high = seqs.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((seqs[middle] as Seq) < seq) low = middle + 1
    else high = middle
  }
  return low
}
