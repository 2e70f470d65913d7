/** Settlements that succeed without an event are found in blocks of any size. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { describe, it } from 'mocha'
import type { ChainBlock } from '../../../indexer/ports.ts'
import { catchUp } from '../support/exchange-fixture.ts'
import { useFollowerFixture } from '../support/follower-fixture.ts'
import { matchPart } from '../support/matched-part.ts'

/** More than the 65,535 parameters that a statement may have. */
const CROWD = 70_000

describe('settlements without an event', () => {
  const fixture = useFollowerFixture()

  /** Sends a transaction without events. Returns its hash. */
  async function sendNothing(): Promise<string> {
    const { exchange, alice } = fixture.context
    const admin = await exchange.provider.getSigner(0)
    return (await admin.sendTransaction({ to: alice.address, value: 1n })).hash
  }

  it('when the block has more transactions than a statement may have parameters, the settlement is found', async () => {
    const { exchange, test, chain } = fixture.context
    await fixture.fundAndFollow()
    const part = await exchange.part(fixture.pair(500))
    await matchPart(test, part, await sendNothing())
    const foreign = Array.from({ length: CROWD }, (_, at) => `0x${at.toString(16).padStart(64, '0')}`)
    const crowded = (block: ChainBlock): ChainBlock => ({
      ...block,
      transactions: [...foreign, ...block.transactions],
    })
    const busy = { ...chain, head: async () => crowded(await chain.head()) }
    await catchUp(exchange.follower(test, busy))
    expect(await fixture.mismatches()).to.deep.equal(['no_trade_execution_events'])
  })

  it('when a transaction of nothing takes the nonce of a dead settlement, it is not a mismatch', async () => {
    const { exchange, test, follower } = fixture.context
    await fixture.fundAndFollow()
    await matchPart(test, await exchange.part(fixture.pair(500)), '0xdead')
    const nothing = await sendNothing()
    await sql`
      insert into relayer_transactions (tx_hash, relayer, chain_id, nonce, purpose, raw, status, signed_at)
      select ${nothing}, relayer, chain_id, nonce, 'nothing', '0x', 'BROADCAST', 0 from relayer_transactions
    `.execute(test.db)
    await catchUp(follower)
    expect(await fixture.mismatches()).to.deep.equal([])
  })
})
