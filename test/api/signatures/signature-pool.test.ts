import { expect } from 'chai'
import { id, Wallet } from 'ethers'
import { after, describe, it } from 'mocha'
import type { Signed } from '../../../api/ports.ts'
import { createSignaturePool, type SignaturePool } from '../../../api/signatures/pool.ts'
import { toSigner } from '../../../client/signers/adapters.ts'
import { buildOrder, orderSigner } from '../../../client/signing.ts'
import { future, perpetual } from '../../support/markets.ts'

const wallet = new Wallet(id('signature pool'))

/** Orders of two markets; every seventh signature is malformed, every fifth is by another signer. */
async function someOrders(count: number): Promise<Signed[]> {
  const stranger = new Wallet(id('stranger'))
  const made = Array.from({ length: count }, async (_, at): Promise<Signed> => {
    const spec = at % 3 === 0 ? future : perpetual
    const market = {
      market_id: spec.marketId,
      trader_address: spec.trader,
      tick_size_e18_raw: String(spec.tick),
      step_size_e18_raw: String(spec.step),
    }
    const terms = { side: 'LONG', price: '50', quantity: '1' } as const
    const order = buildOrder({ market, terms, maker: wallet.address, salt: BigInt(at), now: 0 })
    const signer = at % 5 === 4 ? stranger : wallet
    const { signature } = await orderSigner(market, Number(spec.chainId))(order, toSigner(signer))
    return { spec, order, signature: at % 7 === 6 ? signature.slice(0, -2) : signature }
  })
  return Promise.all(made)
}

describe('the signature pool', () => {
  const pools: SignaturePool[] = []
  const poolOf = (...args: Parameters<typeof createSignaturePool>): SignaturePool => {
    const pool = createSignaturePool(...args)
    pools.push(pool)
    return pool
  }
  after(() => Promise.all(pools.map((pool) => pool.stop())))

  it('when many tasks run on worker threads, the results equal those of the calling thread', async () => {
    const orders = await someOrders(50)
    const here = await poolOf(0).recoverSigners(orders)
    expect(here[0]).to.deep.include({ ok: true })
    expect(here[0]?.ok && here[0].value.signer).to.equal(wallet.address.toLowerCase())
    expect(here[6]).to.deep.include({ ok: false })
    const pool = poolOf(2)
    const there = await Promise.all(Array.from({ length: 12 }, () => pool.recoverSigners(orders)))
    for (const answer of there) expect(answer).to.deep.equal(here)
  })

  it('when a task has few orders, it runs on the calling thread', async () => {
    const orders = await someOrders(3)
    const pool = poolOf(1, { program: new URL('data:text/javascript,') })
    expect(await pool.recoverSigners(orders)).to.deep.equal(await poolOf(0).recoverSigners(orders))
  })

  it('when a thread dies or fails to start, its tasks run on the calling thread', async () => {
    const orders = await someOrders(10)
    const here = await poolOf(0).recoverSigners(orders)
    for (const program of ['throw new Error("no")', 'process.exit(3)', 'syntax error(']) {
      const pool = poolOf(2, { program: new URL(`data:text/javascript,${encodeURIComponent(program)}`) })
      expect(await Promise.all([pool.recoverSigners(orders), pool.recoverSigners(orders)])).to.deep.equal([
        here,
        here,
      ])
    }
  })

  it('when the pool is stopped, tasks run on the calling thread', async () => {
    const orders = await someOrders(10)
    const pool = createSignaturePool(1)
    const before = await pool.recoverSigners(orders)
    await pool.stop()
    expect(await pool.recoverSigners(orders)).to.deep.equal(before)
  })
})
