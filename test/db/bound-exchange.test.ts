import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { bindExchange } from '../../db/bound-exchange.ts'
import { createDb, createPool, type Db } from '../../db/client.ts'
import { ConfigError } from '../../service/environment.ts'
import { freshDatabase } from '../support/postgres.ts'

const BANK = `0x${'Aa'.repeat(20)}`
const openDatabase = async (): Promise<Db> =>
  createDb(createPool({ url: await freshDatabase(), connections: 4, name: 'test' }))

describe('a database bound to an exchange', () => {
  let db: Db

  before(async () => {
    db = await openDatabase()
    await bindExchange(db, { chainId: 6343, bank: BANK })
  })
  after(() => db.destroy())

  it('when the exchange binds it again, with its address in another case, it is accepted', async () => {
    await bindExchange(db, { chainId: 6343, bank: BANK.toLowerCase() })
  })

  for (const [what, exchange, named] of [
    [
      'another bank',
      { chainId: 6343, bank: `0x${'cc'.repeat(20)}` },
      `ADDRESS_MARGIN_BANK is 0x${'cc'.repeat(20)}`,
    ],
    ['another chain', { chainId: 4326, bank: BANK }, 'CHAIN_ID is 4326'],
  ] as const)
    it(`when an exchange with ${what} binds it, it refuses and stays bound`, async () => {
      const error = await bindExchange(db, exchange).then(
        () => expect.fail('accepted'),
        (reason: Error) => reason,
      )
      expect(error).to.be.instanceOf(ConfigError)
      expect(error.message)
        .to.include(named)
        .and.to.include(`chain 6343 with MarginBank ${BANK.toLowerCase()}`)
      await bindExchange(db, { chainId: 6343, bank: BANK })
    })

  it('when four exchanges bind it at once, it belongs to exactly one exchange', async () => {
    const other = await openDatabase()
    const banks = ['aa', 'bb', 'cc', 'dd'].map((byte) => `0x${byte.repeat(20)}`)
    const results = await Promise.allSettled(
      banks.map((bank) => bindExchange(other, { chainId: 6343, bank })),
    )
    expect(results.filter(({ status }) => status === 'fulfilled')).to.have.length(1)
    await other.destroy()
  })
})
