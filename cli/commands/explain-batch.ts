/** `batch explain`: explains a batch's price and each order's fill. */
import { writeFile } from 'node:fs/promises'
import { batchPicture } from '../../client/proof/batch-picture.ts'
import { type BatchExplanation, explainBatch, type PriceRange } from '../../client/proof/explain-batch.ts'
import { verifyBatch } from '../../client/proof/verify-batch.ts'
import type { BatchProof } from '../../domain/proof/verify.ts'
import { statementFrom } from '../../domain/proof/wire.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT } from '../failure.ts'
import { table } from '../print.ts'
import { proofOf } from './batch-proof.ts'

interface Explain {
  readonly positionals: readonly string[]
  readonly svg: string | undefined
}

/** For example `m1/42`, `1/42` or `BTC-PERP/42`. */
const MARKET_AND_BATCH = /^(?:m(?=\d+\/))?([\w-]+)\/(\d+)$/

/** Printed price ranges on either side of the clearing price, because a full book has hundreds. */
const NEIGHBORS = 6

/** Verifies the proof before it explains the batch. */
export async function explain(context: Context, { positionals, svg }: Explain) {
  const [source = '', batch] = positionals
  const named = batch === undefined ? MARKET_AND_BATCH.exec(source) : null
  const read = await (named === null
    ? proofOf(context, source, batch)
    : proofOf(context, named[1] as string, named[2]))
  const { problems } = await verifyBatch(read)
  if (problems.length > 0)
    throw new CommandError(`the proof does not hold\n${problems.join('\n')}`, EXIT.unverified, { problems })
  const proof = read.proof as BatchProof
  const statement = statementFrom(proof.statement)
  const explanation = explainBatch(statement)
  const title = titleOf(proof, explanation)
  if (svg !== undefined) await writeFile(svg, batchPicture(statement, title))
  if (context.format === 'text') return textOf(title, explanation)
  return { symbol: proof.symbol, status: proof.status, ...explanation }
}

const titleOf = ({ symbol, status }: BatchProof, { batch_id, price, volume }: BatchExplanation): string =>
  `batch ${batch_id} of ${symbol}, ${status}: ${price === null ? 'no price' : `price ${price}, volume ${volume}`}`

function textOf(title: string, explanation: BatchExplanation): string {
  const { band, candidates, orders, pairs, parts, as_of, oracle_price } = explanation
  return [
    title,
    `as of ${as_of}, oracle price ${oracle_price}, band ${between(band)}, ${counted(candidates, 'candidate')}`,
    '',
    ...rangeLines(explanation),
    '',
    ...reasonLines(explanation),
    explanation.allocation,
    ...(orders.length === 0 ? [] : ['', table(orders)]),
    '',
    `${counted(pairs, 'pair')}, settled in ${counted(parts, 'part')}`,
  ].join('\n')
}

/** For example `1 pair`, `2 pairs`. */
const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

const between = ([lowest, highest]: readonly [string, string]): string =>
  lowest === highest ? lowest : `${lowest} to ${highest}`

function reasonLines({ largest_volume, smallest_surplus, rule, reason }: BatchExplanation): string[] {
  if (largest_volume === null || smallest_surplus === null) return [reason]
  return [
    `largest volume at ${between(largest_volume)}, of these the smallest surplus at ${between(smallest_surplus)}`,
    `rule ${rule}: ${reason}`,
  ]
}

/** Ranges around the clearing price, or, without a clearing price, around the first range with a sell surplus. */
function rangeLines({ ranges, price }: BatchExplanation): string[] {
  const isCenter = ({ clearing, surplus }: PriceRange): boolean =>
    price === null ? surplus.startsWith('-') : clearing
  const first = Math.max(0, ranges.findIndex(isCenter) - NEIGHBORS)
  const shown = ranges.slice(first, first + 2 * NEIGHBORS + 1)
  const above = ranges.length - first - shown.length
  const rows = shown.map(({ clearing, ...range }) => ({ ...range, clearing: clearing ? price : '' }))
  if (first + above === 0) return [table(rows)]
  return [table(rows), `${first} ranges below and ${above} above are not shown: --json has all`]
}
