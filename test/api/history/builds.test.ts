/** How many files of the public history are built at a time, and which requests share a build. */
import { tmpdir } from 'node:os'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { ApiError } from '../../../api/errors.ts'
import { createHistoryFiles } from '../../../api/history/files.ts'
import { perpetual } from '../../support/markets.ts'
import { type ExchangeFixture, startExchange } from '../support/exchange-fixture.ts'

const DAY = 86_400_000
const FIRST = Math.floor(Date.now() / DAY) * DAY - 5 * DAY

describe('builds of history files', function () {
  this.timeout(60_000)
  let exchange: ExchangeFixture
  before(async () => {
    exchange = await startExchange()
  })
  after(() => exchange.stop())

  it('when many files are requested at once, two are built at a time and too many that wait are 503 at once', async () => {
    const blocked = Promise.withResolvers<void>()
    let [reading, most] = [0, 0]
    const files = createHistoryFiles(
      {
        db: exchange.db,
        now: Date.now,
        logger: { warn() {}, error() {} },
        async read(_shard, query) {
          most = Math.max(most, ++reading)
          await blocked.promise
          return query(exchange.db).finally(() => reading--)
        },
      },
      { directory: tmpdir(), keptBytes: 0, builds: 2, waitMs: 60_000, graceMs: 0, retentionDays: 0 },
    )
    const fileOf = (at: number) =>
      files.file({ kind: 'fills', marketId: 1, day: FIRST - at * DAY }, perpetual)
    const waiting = Array.from({ length: 18 }, (_, at) => fileOf(at))
    const shared = fileOf(17)
    const refused = await fileOf(18).catch((error: unknown) => error)
    expect(refused).to.be.instanceOf(ApiError)
    expect((refused as ApiError).code).to.equal('HISTORY_CAPACITY')
    blocked.resolve()
    const built = await Promise.all([...waiting, shared])
    expect(new Set(built).size, 'requests for the same file share it').to.equal(18)
    expect(most).to.equal(2)
    files.stop()
  })
})
