/** Encodes the messages of a topic. Pure. */
import { isoTime } from '../wire/amounts.ts'
import type { Channel } from './channel.ts'
import type { FeedRow } from './feed-row.ts'
import type { Frame } from './ports.ts'

/** The messages of a topic under its name, as the hub encodes them. */
export interface Encoder {
  readonly name: string
  readonly channel: Channel
}

export interface SnapshotParts {
  readonly epoch: number
  readonly seq: number
  readonly at: number
  readonly data: object
}

const encode = (message: object): Buffer => Buffer.from(JSON.stringify(message))

export function snapshotFrame({ name, channel }: Encoder, { epoch, seq, at, data }: SnapshotParts): Frame {
  const text = encode({ type: 'snapshot', topic: name, seq, prev_seq: 0, epoch, ts: isoTime(at), data })
  return { topic: name, seq, prevSeq: 0, text, isConflatable: channel.isConflatable }
}

export interface SubscribedParts {
  readonly id: string | number
  readonly epoch: number
  readonly seq: number
  readonly isResumed: boolean
  readonly at: number
}

/** It is never conflated: the client waits for it. */
export function subscribedFrame(
  { name }: Encoder,
  { id, epoch, seq, isResumed, at }: SubscribedParts,
): Frame {
  const data = { epoch, resumed: isResumed }
  const text = encode({ type: 'subscribed', id, topic: name, seq, ts: isoTime(at), data })
  return { topic: name, seq, prevSeq: 0, text, isConflatable: false }
}

/** The whole state of a summary, as an update. `rows`: those that it contains and the message before does not. */
export function summaryFrame(
  { name, channel }: Encoder,
  { prevSeq, rows }: { readonly prevSeq: number; readonly rows: readonly FeedRow[] },
  { seq, at, data }: SnapshotParts,
): Frame {
  const text = encode({
    ...{ type: 'update', topic: name, seq, prev_seq: prevSeq, ts: isoTime(at) },
    ...batchOf(rows),
    data,
  })
  return { topic: name, seq, prevSeq, text, isConflatable: channel.isConflatable }
}

/** The newest batch that cleared in the rows. */
function batchOf(rows: readonly FeedRow[]): { readonly batch_id?: number } {
  const batch = rows.findLast(({ batchId }) => batchId !== null)?.batchId ?? null
  return batch === null ? {} : { batch_id: batch }
}

type Update = NonNullable<Channel['update']>

/** One message for consecutive rows that concern the topic. */
function updateFrame({ name, channel }: Encoder, update: Update, rows: readonly FeedRow[]): Frame {
  const first = rows[0] as FeedRow
  const last = rows.at(-1) as FeedRow
  const prevSeq = first.prevSeq(channel.head)
  const text = encode({
    ...{ type: 'update', topic: name, seq: last.seq, prev_seq: prevSeq, ts: isoTime(last.at) },
    ...batchOf(rows),
    ...(channel.hasBookmark && { read_after: last.readAfter }),
    data: update(rows),
  })
  return { topic: name, seq: last.seq, prevSeq, text, isConflatable: channel.isConflatable }
}

/** The messages for rows that concern the topic: a single one if the channel can merge them, none for a summary. */
export function updateFrames(encoder: Encoder, rows: readonly FeedRow[]): Frame[] {
  const { update, isConflatable } = encoder.channel
  if (rows.length === 0 || update === null) return []
  return isConflatable
    ? [updateFrame(encoder, update, rows)]
    : rows.map((row) => updateFrame(encoder, update, [row]))
}
