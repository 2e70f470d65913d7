/** The public proof of a batch, and the commitment with which a trader finds an own order in it. */
import { marketShard } from '../../domain/journal/journal-row.ts'
import { callerOf } from '../http/access.ts'
import { createSharedAnswers } from '../http/shared-answers.ts'
import type { App } from '../http/types.ts'
import { ownOrder, type ReadPorts } from '../orders/own-orders.ts'
import { ORDER_TABLES, orderById } from '../orders/query.ts'
import { OrderIdParams } from '../orders/schema.ts'
import { BookmarkQuery } from '../wire/schema.ts'
import { capturedBatch, expectBatch, PROOF_TABLES } from './proof-query.ts'
import { commitmentOf, proofKey, saltedOrders } from './proof-salts.ts'
import { BatchProof, Commitment, CommitmentQuery, ProofParams } from './proof-schema.ts'
import { proofView } from './proof-view.ts'

export function proofRoutes(app: App, ports: ReadPorts): void {
  proofOfBatch(app, ports)
  commitmentOfOrder(app, ports)
}

/** The auction is run again for each answer: requests for the same proof that arrive together share it. */
function proofOfBatch(app: App, { markets, readAfter }: ReadPorts): void {
  const share = createSharedAnswers()
  app.get(
    '/v0/auctions/:market_id/:batch_id/proof',
    {
      schema: {
        tags: ['markets'],
        summary: 'Get the proof of a batch',
        description:
          'Everything from which price, allocation, pairing and fees of the batch can be recomputed, without accounts: orders appear as salted ' +
          'commitments. `npm run verify-batch` recomputes it and compares it with the transactions on the chain.',
        operationId: 'getBatchProof',
        params: ProofParams,
        querystring: BookmarkQuery,
        response: { 200: BatchProof },
      },
    },
    (request, reply) =>
      share(request, reply, async () => {
        const { market_id, batch_id: batchId } = request.params
        const { marketId } = await markets.byId(market_id)
        const scope = { tables: PROOF_TABLES, shard: marketShard(marketId) }
        return proofView(
          await readAfter.read(request, scope, (db) => capturedBatch(db, { marketId, batchId })),
        )
      }),
  )
}

function commitmentOfOrder(app: App, { markets, readAfter }: ReadPorts): void {
  app.get(
    '/v0/orders/:order_id/commitment',
    {
      config: { access: 'user' },
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
        await expectBatch(db, { marketId, batchId })
        const order = saltedOrders(await proofKey(db), marketId, batchId)(hash)
        const names = { order_id: id, order_hash: hash, market_id, batch_id: batchId }
        return { ...names, salt: order.salt, commitment: commitmentOf(order) }
      })
    },
  )
}
