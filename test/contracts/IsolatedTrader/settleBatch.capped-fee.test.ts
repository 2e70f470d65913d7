/** The log has 96 bits of a fee that was capped at the proceeds of a close. */
import { expect } from 'chai'
import { toBeHex } from 'ethers'
import { coarseExchange, pair, settle, wallet } from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { expectPartRefused } from '../../support/refusals.ts'
import { depositFor } from '../support/risk.ts'
import { fresh } from '../support/wind-down.ts'

const alice = wallet('alice')
const bob = wallet('bob')
const STEPS = 10_000
const CLOSING = 300_000
/** Slot of the market's `Reference`: after the clock. */
const REFERENCE_SLOT = 1

describe('settleBatch: a capped fee', () => {
  it('when it exceeds its log field, the part reverts with AmountOutOfRange and the order', async () => {
    const exchange = await fresh(coarseExchange)
    const { trader, spec, connection } = exchange
    for (const each of [alice, bob]) await depositFor(exchange, each.address, e18('1000000000'))
    await settle(exchange, { price: 1, fills: pair(bob, alice, STEPS, { leverage: 5 }) })

    // Only funding of more than 2^96 wei on one position leads here. Written to the slot, without a last price.
    const notional = (BigInt(CLOSING) * spec.tick * spec.step) / 10n ** 18n
    const index = notional + 10n ** 25n
    await connection.networkHelpers.setStorageAt(spec.trader, REFERENCE_SLOT, toBeHex(index << 144n, 32))
    const { margin, entryNotional } = await trader.position(alice.address)
    const proceeds = margin + entryNotional - BigInt(STEPS) * notional
    expect(proceeds > 1n << 96n && proceeds < (BigInt(STEPS) * notional) / 2_000n).to.equal(true)
    await expectPartRefused(
      exchange,
      { price: CLOSING, fills: pair(alice, bob, STEPS, { salt: 77n }) },
      { error: 'AmountOutOfRange', args: [alice.address, 77, 0] },
    )
  })
})
