/** Verifies the proofs of batches against the chain, as `npm run cb -- batch verify` does. */
import { Client } from '../../client/client.ts'
import { ClearbatchError } from '../../client/errors.ts'
import { verifyBatch } from '../../client/proof/verify-batch.ts'
import { pages } from '../../client/queries.ts'
import type { Auction } from '../../client/responses.ts'
import type { StackFile } from '../stack-file.ts'

export interface VerifiedProofs {
  readonly verified: number
  /** URLs of proofs that the exchange no longer has: their inputs were deleted, or earlier rules cleared the batch. */
  readonly unavailable: readonly string[]
  readonly problems: readonly string[]
}

interface Batches {
  readonly marketIds: readonly number[]
  /** Time of the first batch, ISO 8601 in UTC. */
  readonly from?: string
  /** Newest batches of each market; all by default. */
  readonly most?: number
}

/** Proofs that are verified at the same time. */
const CONCURRENT = 4
const PAGE = 100

export async function verifyProofs(
  { base_url: baseUrl, rpc_url: rpc }: Pick<StackFile, 'base_url' | 'rpc_url'>,
  { marketIds, from, most = Number.POSITIVE_INFINITY }: Batches,
): Promise<VerifiedProofs> {
  const { marketData } = new Client({ baseUrl })
  const problems: string[] = []
  const unavailable: string[] = []
  let verified = 0
  const verify = async ({ market_id, batch_id }: Auction): Promise<void> => {
    const source = `${baseUrl}/v0/auctions/${market_id}/${batch_id}/proof`
    const readAt = Date.now()
    try {
      const proof = await marketData.batchProof(market_id, batch_id)
      const found = await verifyBatch({ proof, readAt, rpc })
      problems.push(...found.problems.map((problem) => `${source}: ${problem}`))
      verified++
    } catch (error) {
      if (error instanceof ClearbatchError && error.code === 'PROOF_NOT_AVAILABLE') unavailable.push(source)
      else problems.push(`${source}: ${(error as Error).message}`)
    }
  }
  for (const marketId of marketIds) {
    const batches: Auction[] = []
    const options = { limit: Math.min(PAGE, most), ...(from && { from }) }
    for await (const { auctions } of pages((cursor) =>
      marketData.auctionPage(marketId, { ...options, ...(cursor && { cursor }) }),
    )) {
      batches.push(...auctions)
      if (batches.length >= most) break
    }
    const waiting = batches.slice(0, most)
    const worker = async (): Promise<void> => {
      for (let batch = waiting.pop(); batch !== undefined; batch = waiting.pop()) await verify(batch)
    }
    await Promise.all(Array.from({ length: CONCURRENT }, worker))
  }
  return { verified, unavailable, problems }
}
