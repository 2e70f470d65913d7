/** Reads the proof of a batch: from the exchange, a URL or a file. */
import { readFile } from 'node:fs/promises'
import type { VerifyOptions } from '../../client/proof/verify-batch.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT } from '../failure.ts'

const TIMEOUT_MS = 30_000

export type Read = Pick<VerifyOptions, 'proof' | 'readAt'>

export async function fetchProof(context: Context, symbol: string, number: string): Promise<Read> {
  const client = context.anonymous()
  const { market_id } = await context.market(client, symbol)
  const readAt = Date.now()
  return { proof: await client.marketData.batchProof(market_id, batchNumber(number)), readAt }
}

/** With a batch, `source` is a market; without one a URL or a file. */
export const proofOf = (context: Context, source: string, batch: string | undefined): Promise<Read> =>
  batch === undefined ? readProof(source) : fetchProof(context, source, batch)

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

const batchNumber = (text: string): number => {
  if (!/^[1-9]\d*$/.test(text))
    throw new CommandError(`the batch must be a whole number from 1; received ${text}`, EXIT.usage)
  return Number(text)
}
