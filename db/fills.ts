/** A part of a batch, as the tables name it. */
export interface PartKey {
  readonly batch_id: number
  readonly part: number
}
