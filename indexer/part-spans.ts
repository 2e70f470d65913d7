/** Spans of the indexer, each under the span of a batch: blocks with its parts, and chunks with its rows. */
import { batchSpan, type SpanRef, type Spans } from '../service/spans.ts'
import type { ChainRecord, NextBlock } from './ingest/chain-record.ts'
import type { ChunkProgress } from './project/project-chunk.ts'

/** Batches per chunk that have a span: a chunk of a long backlog has thousands. */
const MOST_BATCHES = 64

export class PartSpans {
  readonly #spans: Spans

  constructor(spans: Spans) {
    this.#spans = spans
  }

  /** The record, with a span for each block that is recorded. */
  follow(record: ChainRecord): ChainRecord {
    return {
      ...record,
      ingest: async (next) => {
        const startedAt = this.#spans.now()
        const outcome = await record.ingest(next)
        if (outcome.kind === 'recorded') this.#recorded(next, startedAt)
        return outcome
      },
    }
  }

  #recorded({ block, facts }: Pick<NextBlock, 'block' | 'facts'>, startedAt: number): void {
    const endedAt = this.#spans.now()
    for (const { fact, log } of facts) {
      if (fact.kind !== 'part_mined') continue
      const { spec, settled } = fact
      this.#spans.add({
        name: 'record block',
        parent: batchSpan(spec.marketId, settled.batchId, settled.asOf),
        startedAt,
        endedAt,
        attributes: {
          'clearbatch.batch': `${spec.marketId}/${settled.batchId}`,
          'clearbatch.part': settled.part,
          'clearbatch.tx_hash': log.txHash,
          'clearbatch.block': block.number,
        },
      })
    }
  }

  /** The chunk is committed. */
  projected({ shards, rows }: Pick<ChunkProgress, 'shards' | 'rows'>, seconds: number): void {
    const endedAt = this.#spans.now()
    const batches = new Map<string, SpanRef>()
    for (const { shard, row } of shards.flatMap(({ entries }) => entries)) {
      if (batches.size >= MOST_BATCHES) break
      if (row.kind !== 'batch_cleared' && row.kind !== 'part_settled') continue
      const market = shard.slice(1)
      if (row.as_of !== undefined)
        batches.set(`${market}/${row.batch_id}`, batchSpan(market, row.batch_id, row.as_of))
    }
    for (const [batch, parent] of batches)
      this.#spans.add({
        name: 'project chunk',
        parent,
        startedAt: endedAt - 1000 * seconds,
        endedAt,
        attributes: { 'clearbatch.batch': batch, 'clearbatch.rows': rows },
      })
  }
}
