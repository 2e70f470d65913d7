/** The public proof of a batch, and the commitment with which a trader finds an own order in it. */
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Db } from '../../db/client.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import { callerOf } from '../http/access.ts'
import { markImmutable } from '../http/caching.ts'
import type { App } from '../http/types.ts'
import { ownOrder, type ReadPorts } from '../orders/own-orders.ts'
import { ORDER_TABLES, orderById } from '../orders/query.ts'
import { OrderIdParams } from '../orders/schema.ts'
import type { Reading } from '../read-after/read-after.ts'
import { BookmarkQuery } from '../wire/schema.ts'
import { type BatchKey, batchState, captureBatch, namesOf, PROOF_TABLES } from './proof-query.ts'
import { commitmentOf, proofKey, saltedOrders } from './proof-salts.ts'
import { BatchProof, Commitment, CommitmentQuery, ProofParams } from './proof-schema.ts'
import { createProofs, type Proof } from './proofs.ts'

interface ProofPorts extends ReadPorts {
  readonly db: Db
}

export function proofRoutes(app: App, ports: ProofPorts): void {
  proofOfBatch(app, ports)
  commitmentOfOrder(app, ports)
}

interface FinalProof extends Proof {
  readonly isFinal: boolean
}

/**
 * Reads or builds proofs. Concurrent requests for the same proof share one build; a read with a bookmark does not
 * share.
 */
function createProofReads(app: App, { db, readAfter }: ProofPorts) {
  const proofs = createProofs()
  app.addHook('onClose', () => proofs.stop())
  const running = new Map<string, Promise<FinalProof>>()

  async function read(reading: Reading, batch: BatchKey): Promise<FinalProof> {
    const { marketId } = batch
    const scope = { tables: PROOF_TABLES, shard: marketShard(marketId) }
    const { state, found } = await readAfter.read(reading, scope, async (from) => {
      const state = await batchState(from, batch)
      return { state, found: proofs.kept(batch, state) ?? (await captureBatch(from, batch)) }
    })
    const { isFinal } = state
    if ('gzip' in found) return { ...found, isFinal }
    const proof = await proofs.make(found, state, (orders) => namesOf(db, marketId, orders))
    return { ...proof, isFinal }
  }

  return (reading: Reading, batch: BatchKey): Promise<FinalProof> => {
    if (Object.keys(reading.query).length > 0) return read(reading, batch)
    const key = `${batch.marketId} ${batch.batchId}`
    const shared = running.get(key) ?? read(reading, batch).finally(() => running.delete(key))
    running.set(key, shared)
    return shared
  }
}

const unzip = promisify(gunzip)

const acceptsGzip = ({ headers }: FastifyRequest): boolean =>
  String(headers['accept-encoding'] ?? '')
    .split(',')
    .some((each) => /^\s*gzip\s*(;\s*q=(?!0(\.0*)?\s*$)[\d.]+\s*)?$/i.test(each))

/** Proofs are kept compressed; decompression runs on a thread of Node. */
async function answer(request: FastifyRequest, reply: FastifyReply, proof: FinalProof): Promise<Buffer> {
  const { gzip, digest, isFinal } = proof
  const isPacked = acceptsGzip(request)
  reply.type('application/json; charset=utf-8')
  const vary = reply.getHeader('vary')
  reply.header('vary', vary === undefined ? 'Accept-Encoding' : `${vary}, Accept-Encoding`)
  reply.header('etag', `"${digest}${isPacked ? '-gzip' : ''}"`)
  if (isFinal) markImmutable(reply)
  if (!isPacked) return unzip(gzip)
  reply.header('content-encoding', 'gzip')
  return Buffer.from(gzip.buffer, gzip.byteOffset, gzip.byteLength)
}

function proofOfBatch(app: App, ports: ProofPorts): void {
  const proofOf = createProofReads(app, ports)
  app.get(
    '/v0/auctions/:market_id/:batch_id/proof',
    {
      config: {
        bucket: 'proofs',
        cached: true,
        errors: ['AUCTION_NOT_FOUND', 'PROOF_NOT_AVAILABLE', 'PROOF_CAPACITY'],
        sends: ['Vary'],
      },
      schema: {
        tags: ['markets'],
        summary: 'Get the proof of a batch',
        description:
          'Everything from which price, allocation, pairing and fees of the batch can be recomputed, without accounts: orders appear as salted ' +
          'commitments. `npm run cb -- batch verify` recomputes it and compares it with the transactions on the chain.',
        operationId: 'getBatchProof',
        params: ProofParams,
        querystring: BookmarkQuery,
        response: { 200: BatchProof },
      },
    },
    async (request, reply) => {
      const { market_id, batch_id: batchId } = request.params
      const { marketId } = await ports.markets.byId(market_id)
      const proof = await proofOf(request, { marketId, batchId })
      // Serialized already.
      return (await answer(request as FastifyRequest, reply as FastifyReply, proof)) as unknown as BatchProof
    },
  )
}

function commitmentOfOrder(app: App, { markets, readAfter }: ReadPorts): void {
  app.get(
    '/v0/orders/:order_id/commitment',
    {
      config: { access: 'user', errors: ['NOT_YOURS', 'ORDER_NOT_FOUND', 'AUCTION_NOT_FOUND'] },
      schema: {
        tags: ['orders'],
        summary: 'Get the commitment to one of your orders in a batch',
        description:
          'Also of a batch in which the order took no part: then the proof of the batch does not contain the commitment.',
        operationId: 'getOrderCommitment',
        params: OrderIdParams,
        querystring: CommitmentQuery,
        response: { 200: Commitment },
      },
    },
    async (request) => {
      const id = request.params.order_id
      const { batch_id: batchId } = request.query
      const scope = { tables: [...ORDER_TABLES, 'read.batches'] } as const
      return readAfter.read(request, scope, async (db) => {
        const requested = { field: 'order_id', received: id } as const
        const { market_id, hash } = ownOrder(await orderById(db, id), callerOf(request).userId, requested)
        const { marketId } = await markets.byId(market_id)
        await batchState(db, { marketId, batchId })
        const order = saltedOrders(await proofKey(db), marketId, batchId)(hash)
        const names = { order_id: id, order_hash: hash, market_id, batch_id: batchId }
        return { ...names, salt: order.salt, commitment: commitmentOf(order) }
      })
    },
  )
}
