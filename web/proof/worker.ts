/** Recomputes a batch with the rules of the exchange, beside the page, so that a large batch does not stop it. */
import { keccak_256 } from '@noble/hashes/sha3.js'
import { InvariantError } from '../../domain/invariant.ts'
import type { BatchStatement } from '../../domain/proof/batch-statement.ts'
import { placeOf } from '../../domain/proof/own-order.ts'
import { type BatchProof, verifyParts, verifyProof } from '../../domain/proof/verify.ts'
import { statementFrom } from '../../domain/proof/wire.ts'
import { NodeUnfit, type Rpc, readChain } from './chain.ts'
import type { FromWorker, OwnCommitment, ToWorker, Verdict } from './verdict.ts'

const send = (message: FromWorker): void => postMessage(message)

interface Waiting {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

const waiting = new Map<number, Waiting>()
let calls = 0

/** The page sends the request: it has the wallet, and knows the visitor's node. */
const rpcOf =
  (id: number): Rpc =>
  (method, params) =>
    new Promise((resolve, reject) => {
      const call = ++calls
      waiting.set(call, { resolve, reject })
      send({ kind: 'call', id, call, method, params })
    })

async function compareWithChain(
  rpc: Rpc,
  proof: BatchProof,
  statement: BatchStatement,
  readAt: number,
): Promise<Verdict> {
  const settled = proof.parts.filter(({ status }) => status === 'settled').length
  const { mined, differences } = await readChain(rpc, proof, statement, readAt)
  const found = [...differences, ...verifyParts(proof, mined, keccak_256)]
  if (found.length > 0) return { state: 'different', differences: found }
  if (proof.status === 'VOIDED') return { state: 'voided' }
  if (settled < proof.parts.length) return { state: 'unmined', mined: settled, parts: proof.parts.length }
  return { state: 'verified', transactions: settled }
}

type Request = Extract<ToWorker, { readonly kind: 'verify' }>

/** A statement that the rules cannot even read differs from every statement that they can. */
const malformed = (error: unknown): Verdict => ({
  state: 'different',
  differences: [`the proof is malformed: ${(error as Error).message}`],
})

function recompute(proof: BatchProof): readonly string[] | Verdict {
  try {
    return verifyProof(proof, keccak_256)
  } catch (error) {
    return malformed(error)
  }
}

async function verdictOf({ id, proof: received, hasNode, readAt }: Request): Promise<Verdict> {
  const proof = received as BatchProof
  const recomputed = recompute(proof)
  if ('state' in recomputed) return recomputed
  if (recomputed.length > 0) return { state: 'different', differences: recomputed }
  if (!hasNode) return { state: 'recomputed', reason: null }
  try {
    return await compareWithChain(rpcOf(id), proof, statementFrom(proof.statement), readAt)
  } catch (error) {
    if (error instanceof InvariantError) return malformed(error)
    const reason =
      error instanceof NodeUnfit ? error.message : `the node did not answer: ${(error as Error).message}`
    return { state: 'recomputed', reason }
  }
}

function ownPlaces(proof: BatchProof, own: readonly OwnCommitment[]): number[] {
  if (own.length === 0) return []
  const statement = statementFrom(proof.statement)
  return own.flatMap((each) => placeOf(statement, each, keccak_256) ?? [])
}

async function verify(request: Request): Promise<void> {
  const began = performance.now()
  const verdict = await verdictOf(request)
  const own = verdict.state === 'different' ? [] : ownPlaces(request.proof as BatchProof, request.own)
  send({
    kind: 'verification',
    id: request.id,
    verification: { verdict, own, tookMs: performance.now() - began },
  })
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
