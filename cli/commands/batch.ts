/** Commands on batches: what an auction decided, and whether its proof holds. */
import { readFile } from 'node:fs/promises'
import type { Client } from '../../client/client.ts'
import { type OwnFields, verifyBatch } from '../../client/proof/verify-batch.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT } from '../failure.ts'
import { fetchProof, proofOf } from './batch-proof.ts'

const HASH = /^0x[0-9a-f]{64}$/
const ADDRESS = /^0x[0-9a-fA-F]{40}$/

interface Batch {
  readonly positionals: readonly string[]
}

interface Verify extends Batch {
  readonly trader: string | undefined
  readonly order: string | undefined
  readonly salt: string | undefined
  readonly follow: boolean
}

export async function show(context: Context, { positionals: [symbol = '', number = ''] }: Batch) {
  return (await fetchProof(context, symbol, number)).proof as object
}

/** One or several proofs; throws with the exit code of a failed verification. */
export async function verify(context: Context, args: Verify) {
  checkArguments(args)
  const [source = '', number] = args.positionals
  if (args.follow) return follow(context, source)
  const own =
    args.order === undefined
      ? undefined
      : { order: await readOwnOrder(args.order), salt: args.salt as string }
  const read = await proofOf(context, source, number)
  const { lines, problems } = await verifyBatch({
    ...read,
    rpc: context.flags['rpc-url'] ?? (number === undefined ? undefined : context.place.rpcUrl),
    trader: args.trader,
    own,
  })
  if (problems.length > 0)
    throw new CommandError(
      `the proof does not hold: ${problems.length} differences\n${problems.join('\n')}`,
      EXIT.unverified,
      { problems },
    )
  return context.format === 'text' ? [...lines, 'the proof holds'].join('\n') : { holds: true, checks: lines }
}

function checkArguments({ positionals, trader, order, salt, follow }: Verify): void {
  if ((order === undefined) !== (salt === undefined))
    throw new CommandError('--order and --salt are given together or not at all', EXIT.usage)
  if (trader !== undefined && !ADDRESS.test(trader))
    throw new CommandError(
      `--trader is an address, 0x and 40 hexadecimal digits; received ${trader}`,
      EXIT.usage,
    )
  if (follow && positionals.length !== 1)
    throw new CommandError(`--follow takes one market; received ${positionals.join(' ')}`, EXIT.usage)
}

/** `order` is a hash, or a file with the answer to a placement or a read. */
async function readOwnOrder(order: string): Promise<string | OwnFields> {
  if (HASH.test(order)) return order
  const content = JSON.parse(await readFile(order, 'utf8')) as OwnFields & { readonly order?: OwnFields }
  return content.order ?? content
}

// ---------------------------------------------------------------------- following a market

interface AuctionData {
  readonly auctions: readonly { readonly batch_id: number }[]
}

/** Verifies each batch as it is decided, until it is stopped or a proof does not hold. */
async function follow(context: Context, symbol: string): Promise<string> {
  const client = context.anonymous()
  const { market_id } = await context.market(client, symbol)
  const verified = new Set<number>()
  const messages = client.live.messages(`market.${market_id}.auction`)
  const stopped = new Promise<null>((resolve) => {
    context.stopping.addEventListener('abort', () => resolve(null), { once: true })
  })
  for (;;) {
    const next = await Promise.race([messages.next(), stopped])
    if (next === null || next.done) return `${verified.size} batches verified`
    const { type, data } = next.value
    const { auctions } = data as AuctionData
    // A snapshot lists earlier batches, the newest first. An update also has batches whose settlement went on.
    for (const { batch_id } of type === 'snapshot' ? auctions.slice(0, 1) : auctions) {
      if (verified.has(batch_id)) continue
      await verifyFollowed(context, client, market_id, batch_id)
      verified.add(batch_id)
    }
  }
}

async function verifyFollowed(
  context: Context,
  client: Client,
  marketId: number,
  batchId: number,
): Promise<void> {
  const readAt = Date.now()
  const proof = await client.marketData.batchProof(marketId, batchId)
  const { lines, problems } = await verifyBatch({ proof, readAt, rpc: context.place.rpcUrl })
  if (problems.length > 0)
    throw new CommandError(
      `the proof of batch ${batchId} does not hold\n${problems.join('\n')}`,
      EXIT.unverified,
      {
        batch_id: batchId,
        problems,
      },
    )
  const line = lines[0] ?? ''
  context.terminal.out(
    context.format === 'text' ? line : JSON.stringify({ batch_id: batchId, holds: true, check: line }),
  )
}
