/** Verifies the proofs of batches against the chain. */
import type { Auction } from '../../../client/responses.ts'
import type { Stack } from '../../../stack/stack.ts'
import { verifyBatch } from '../../../verify/run.ts'

/** Newest batches of each market. */
const MOST = 50

export interface VerifiedProofs {
  readonly verified: number
  readonly problems: readonly string[]
}

/** Verifies the newest batches of each market. A batch of earlier rules has no proof. */
export async function verifyProofs({ specs, file }: Pick<Stack, 'specs' | 'file'>): Promise<VerifiedProofs> {
  const problems: string[] = []
  let verified = 0
  for (const { marketId } of specs) {
    const answer = await fetch(`${file.base_url}/v0/auctions?market_id=${marketId}&limit=${MOST}`)
    const { auctions } = (await answer.json()) as { readonly auctions: readonly Auction[] }
    for (const { batch_id } of auctions) {
      const source = `${file.base_url}/v0/auctions/${marketId}/${batch_id}/proof`
      const found = await verifyBatch({ source, rpc: file.rpc_url }).catch((error: Error) => ({
        problems: [error.message],
      }))
      problems.push(...found.problems.map((problem) => `${source}: ${problem}`))
      verified++
    }
  }
  return { verified, problems: problems.filter((problem) => !problem.includes('PROOF_NOT_AVAILABLE')) }
}
