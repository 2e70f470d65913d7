/** Recomputes a batch with the rules of the exchange, beside the page, so that a large batch does not stop it. */
import { Rpc } from '../../client/chain/rpc.ts'
import { keccak } from '../../client/keccak.ts'
import { readSettlements } from '../../client/proof/settlements.ts'
import { misshapen } from '../../client/proof/shape.ts'
import { InvariantError } from '../../domain/invariant.ts'
import type { BatchStatement } from '../../domain/proof/batch-statement.ts'
import { placeOf } from '../../domain/proof/own-order.ts'
import { type BatchProof, verifyParts, verifyProof } from '../../domain/proof/verify.ts'
import { statementFrom } from '../../domain/proof/wire.ts'
import { fetchOf, NO_URL, type RpcCall } from '../base/json-rpc.ts'
import type { FromWorker, OwnCommitment, ToWorker, Verdict } from './verdict.ts'

const send = (message: FromWorker): void => postMessage(message)

interface Waiting {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

const waiting = new Map<number, Waiting>()
let calls = 0

/** The page sends the request: it has the wallet, and knows the visitor's node. */
const callOf =
  (id: number): RpcCall =>
  (method, params) =>
    new Promise((resolve, reject) => {
      const call = ++calls
      waiting.set(call, { resolve, reject })
      send({ kind: 'call', id, call, method, params })
    })

/** Why the node cannot decide: it serves another chain, or has not reached the batch. Null if it can. */
async function unfitness(rpc: Rpc, { market, asOf }: BatchStatement): Promise<string | null> {
  const chainId = await rpc.chainId()
  if (chainId !== market.chainId)
    return `the node serves chain ${chainId}; the batch settles on chain ${market.chainId}`
  const head = await rpc.call<{ readonly timestamp: string }>('eth_getBlockByNumber', 'latest', false)
  return Number(head.timestamp) * 1000 < asOf - CLOCK_SLACK_MS
    ? 'the node is behind: its newest block is older than the batch'
    : null
}

/** Times of blocks are whole seconds, and the exchange's clock may be ahead of them. */
const CLOCK_SLACK_MS = 2_000

interface Comparison {
  readonly call: RpcCall
  readonly proof: BatchProof
  readonly readAt: number
}

async function compareWithChain({ call, proof, readAt }: Comparison): Promise<Verdict> {
  const statement = statementFrom(proof.statement)
  const node = fetchOf(call)
  const reason = await unfitness(new Rpc(NO_URL, node), statement)
  if (reason !== null) return { state: 'recomputed', reason }
  const { mined, differences } = await readSettlements({ url: NO_URL, readAt, fetch: node }, proof, statement)
  const found = [...differences, ...verifyParts(proof, mined, keccak)]
  if (found.length > 0) return { state: 'different', differences: found }
  if (proof.status === 'VOIDED') return { state: 'voided' }
  const settled = proof.parts.filter(({ status }) => status === 'settled').length
  if (settled < proof.parts.length) return { state: 'unmined', mined: settled, parts: proof.parts.length }
  return { state: 'verified', transactions: settled }
}

type Request = Extract<ToWorker, { readonly kind: 'verify' }>

async function verdictOf({ id, proof: received, hasNode, readAt }: Request): Promise<Verdict> {
  const malformed = misshapen(received)
  if (malformed !== null) return { state: 'different', differences: [`not a proof: ${malformed}`] }
  const proof = received as BatchProof
  const recomputed = verifyProof(proof, keccak)
  if (recomputed.length > 0) return { state: 'different', differences: recomputed }
  if (!hasNode) return { state: 'recomputed', reason: null }
  try {
    return await compareWithChain({ call: callOf(id), proof, readAt })
  } catch (error) {
    // A call that cannot be decoded differs from the call that the rules give.
    if (error instanceof InvariantError)
      return {
        state: 'different',
        differences: [`the settlement transaction cannot be read: ${error.message}`],
      }
    return { state: 'recomputed', reason: `the node did not answer: ${(error as Error).message}` }
  }
}

function ownPlaces(proof: BatchProof, own: readonly OwnCommitment[]): number[] {
  if (own.length === 0) return []
  const statement = statementFrom(proof.statement)
  return own.flatMap((each) => placeOf(statement, each, keccak) ?? [])
}

/** An error of the verifier itself never counts as a result that holds. */
const failed = (error: unknown): Verdict => ({
  state: 'different',
  differences: [`the verification failed: ${(error as Error).message}`],
})

async function verify(request: Request): Promise<void> {
  const began = performance.now()
  const verdict = await verdictOf(request).catch(failed)
  const own = verdict.state === 'different' ? [] : ownPlaces(request.proof as BatchProof, request.own)
  const tookMs = performance.now() - began
  send({ kind: 'verification', id: request.id, verification: { verdict, own, tookMs } })
}

addEventListener('message', ({ data }: MessageEvent<ToWorker>) => {
  if (data.kind === 'verify') {
    void verify(data)
    return
  }
  const call = waiting.get(data.call)
  waiting.delete(data.call)
  if (data.error === undefined) call?.resolve(data.result)
  else call?.reject(new Error(data.error))
})
