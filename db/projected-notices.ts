/**
 * Notices of projectors after their commits: how far shards are projected. A notice covers many shards, so that
 * processes get few notices with many busy markets.
 */

export const PROJECTED_CHANNEL = 'projected'

export interface ProjectedShard {
  readonly shard: string
  readonly epoch: number
  /** The last projected row. */
  readonly seq: number
}

export interface ProjectedNotice {
  /** Projections that have reached `seq` in every listed shard. */
  readonly projections: readonly string[]
  readonly shards: readonly ProjectedShard[]
  /** The latest row of the live feed that was appended; null if none was. */
  readonly feedSeq: number | null
}

/** Postgres allows 8,000 bytes. */
const MOST_BYTES = 7_900

/** A payload `<feed seq>|<projections>|<shard>:<epoch>:<seq>,…`, or several if it would be too long. */
export function encodeNotice({ projections, shards, feedSeq }: ProjectedNotice): string[] {
  const head = `${feedSeq ?? ''}|${projections.join()}|`
  const payloads: string[] = []
  let payload = ''
  for (const { shard, epoch, seq } of shards) {
    const item = `${shard}:${epoch}:${seq}`
    if (payload !== '' && payload.length + 1 + item.length > MOST_BYTES) {
      payloads.push(payload)
      payload = ''
    }
    payload += payload === '' ? head + item : `,${item}`
  }
  return payload === '' ? payloads : [...payloads, payload]
}

export function decodeNotice(payload: string): ProjectedNotice {
  const [feedSeq = '', projections = '', shards = ''] = payload.split('|')
  return {
    projections: projections.split(','),
    shards: shards.split(',').map((item) => {
      const [shard = '', epoch, seq] = item.split(':')
      return { shard, epoch: Number(epoch), seq: Number(seq) }
    }),
    feedSeq: feedSeq === '' ? null : Number(feedSeq),
  }
}
