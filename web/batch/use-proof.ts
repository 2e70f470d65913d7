/** Reads the proof of a batch and verifies it, again while its settlement is not final. */
import { useEffect, useState } from 'preact/hooks'
import { ClearbatchError } from '../../client/errors.ts'
import type { BatchProof } from '../../client/responses.ts'
import { fills } from '../account/live-account.ts'
import { session } from '../account/session.ts'
import { settings } from '../base/settings.ts'
import { marketData } from '../feed/exchange.ts'
import type { OwnCommitment, Verification } from '../proof/verdict.ts'
import { verifyBatch } from '../proof/verify.ts'
import { loadTrading } from '../ui/lazy.tsx'

export interface ProofState {
  readonly proof: BatchProof | null
  readonly verification: Verification | null
  readonly error: string | null
}

const NONE: ProofState = { proof: null, verification: null, error: null }
const AGAIN_MS = 1_500

/** Salts of the own orders that have filled in the batch: with them the anonymous orders can be recognised. */
async function ownCommitments(marketId: number, batchId: number): Promise<readonly OwnCommitment[]> {
  if (session.value === null) return []
  const orderIds = new Set(
    fills.value
      .filter((fill) => fill.market_id === marketId && fill.batch_id === batchId)
      .map(({ order_id }) => order_id),
  )
  if (orderIds.size === 0) return []
  const { requireTrader } = await loadTrading()
  const answers = [...orderIds].map((id) => requireTrader().orders.commitment(id, batchId))
  const settled = await Promise.allSettled(answers)
  return settled.flatMap((each) =>
    each.status === 'fulfilled' ? [{ orderHash: each.value.order_hash, salt: each.value.salt }] : [],
  )
}

const isFinal = ({ verdict }: Verification): boolean => verdict.state !== 'unmined'

export function useProof(marketId: number, batchId: number): ProofState & { readonly again: () => void } {
  const [state, setState] = useState<ProofState>(NONE)
  const [round, setRound] = useState(0)
  const { rpc } = settings.value
  useEffect(() => {
    let isOpen = true
    let timer: ReturnType<typeof setTimeout> | undefined
    const run = async (): Promise<void> => {
      try {
        const [proof, own] = await Promise.all([
          marketData.batchProof(marketId, batchId),
          ownCommitments(marketId, batchId),
        ])
        const verification = await verifyBatch(proof, Date.now(), own)
        if (!isOpen) return
        setState({ proof, verification, error: null })
        const isSettling = proof.status === 'SETTLING'
        if (isSettling || !isFinal(verification)) timer = setTimeout(() => void run(), AGAIN_MS)
      } catch (error) {
        if (!isOpen) return
        setState({ ...NONE, error: (error as Error).message })
        const isTransient = error instanceof ClearbatchError && error.retryable
        if (isTransient) timer = setTimeout(() => void run(), AGAIN_MS)
      }
    }
    setState((before) => ({ ...before, verification: null }))
    void run()
    return () => {
      isOpen = false
      clearTimeout(timer)
    }
  }, [marketId, batchId, rpc, round, session.value?.address])
  return { ...state, again: () => setRound((before) => before + 1) }
}
