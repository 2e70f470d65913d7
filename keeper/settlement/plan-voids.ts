/** Voids batches by decisions of the worker on the tables. */
import { reservingSpec } from '../../domain/market/in-force.ts'
import { FLAT } from '../../domain/positions/position.ts'
import { planVoid } from '../../domain/settlement/void-batch.ts'
import type { Quote } from '../../domain/units.ts'
import type { VoidedBatches, VoidStore, Voids } from './ports.ts'

const NO_FUNDS = { free: 0n as Quote, reserved: 0n as Quote }

export const createVoids = (store: VoidStore): Voids => ({
  async voidFrom(spec, fence, { queueNo, culprit, at }) {
    let voided: VoidedBatches | null = null
    await store.transaction(spec.marketId, fence, queueNo, async (transaction) => {
      const isUnnamed = culprit.kind === 'unnamed'
      const { batches, orders, mined, funds, isAfterUnnamed } = transaction
      const voiding = planVoid({
        spec: reservingSpec(spec, transaction.reservedFee),
        at,
        culprit,
        batches,
        orders,
        positions: (account) => mined.get(account) ?? FLAT,
        fundsOf: (account) => funds.get(account) ?? NO_FUNDS,
      })
      const cancelOnly = isUnnamed && isAfterUnnamed
      await transaction.save({ ...voiding, at, error: culprit.error, isUnnamed, cancelOnly })
      voided = { batchIds: batches.map(({ batchId }) => batchId), isRestricted: cancelOnly }
    })
    return voided
  },
})
