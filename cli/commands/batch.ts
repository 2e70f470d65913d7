/** Commands on batches: what an auction decided, and whether its proof holds. */
import { readFile } from 'node:fs/promises'
import type { Client } from '../../client/client.ts'
import { type OwnFields, type VerifyOptions, verifyBatch } from '../../client/proof/verify-batch.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT } from '../failure.ts'

const HASH = /^0x[0-9a-f]{64}$/
const ADDRESS = /^0x[0-9a-fA-F]{40}$/
const TIMEOUT_MS = 30_000

interface Batch {
  readonly positionals: readonly string[]
}

interface Verify extends Batch {
  readonly trader: string | undefined
  readonly order: string | undefined
  readonly salt: string | undefined
  readonly follow: boolean
}

const batchNumber = (text: string): number => {
  if (!/^[1-9]\d*$/.test(text))
    throw new CommandError(`the batch must be a whole number from 1; received ${text}`, EXIT.usage)
  return Number(text)
}

export async function show(context: Context, { positionals: [symbol = '', number = ''] }: Batch) {
  const client = context.anonymous()
  const { market_id } = await context.market(client, symbol)
  return client.marketData.batchProof(market_id, batchNumber(number))
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
  const read = number === undefined ? await readProof(source) : await fetchProof(context, source, number)
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

type Read = Pick<VerifyOptions, 'proof' | 'readAt'>

async function fetchProof(context: Context, symbol: string, number: string): Promise<Read> {
  const client = context.anonymous()
  const { market_id } = await context.market(client, symbol)
  const readAt = Date.now()
  return { proof: await client.marketData.batchProof(market_id, batchNumber(number)), readAt }
}

/** Throws if the file or the URL cannot be read, or contains no JSON. */
async function readProof(source: string): Promise<Read> {
  const isUrl = /^https?:\/\//.test(source)
  const readAt = isUrl ? { readAt: Date.now() } : {}
  const text = isUrl ? await download(source) : await readFile(source, 'utf8')
  try {
    return { proof: JSON.parse(text), ...readAt }
  } catch {
    throw new CommandError(`${source} is no JSON: expected the proof of a batch`)
  }
}

async function download(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) }).catch((error: Error) => {
    throw new CommandError(`${url} cannot be read: ${error.message}`, EXIT.unavailable)
  })
  const text = await response.text()
  if (!response.ok) throw new CommandError(`${url} answered ${response.status}: ${text.slice(0, 500)}`)
  return text
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
