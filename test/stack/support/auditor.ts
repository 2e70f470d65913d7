/** An api on a fixture's database, and the audit of the fixture's chain, database and REST answers. */
import type { AddressInfo } from 'node:net'
import { createApiKey } from '../../../api/auth/credentials.ts'
import { type Api, compose } from '../../../api/compose.ts'
import { readConfig } from '../../../api/config.ts'
import { projectAll } from '../../../indexer/project/project-shards.ts'
import { createLogger } from '../../../service/logger.ts'
import { type Audit, audit } from '../../../stack/audit/audit.ts'
import { apiEnv } from '../../api/support/exchange-fixture.ts'
import type { ChainFixture } from '../../keeper/support/chain-fixture.ts'
import type { Trader } from '../../keeper/support/market-fixture.ts'

export class Auditor {
  readonly #fixture: ChainFixture
  readonly #api: Api

  private constructor(fixture: ChainFixture, api: Api) {
    this.#fixture = fixture
    this.#api = api
  }

  static async start(fixture: ChainFixture): Promise<Auditor> {
    const config = readConfig(apiEnv(fixture.url))
    const api = await compose(config, createLogger('api', config.logLevel), fixture.engine)
    await api.app.listen({ port: 0, host: '127.0.0.1' })
    return new Auditor(fixture, api)
  }

  stop(): Promise<void> {
    return this.#api.stop()
  }

  project(): Promise<number> {
    return projectAll(this.#fixture.db, { limit: 1_000, killPoint() {} })
  }

  /** Projects everything first. */
  async audit(traders: readonly Trader[]): Promise<Audit> {
    await this.project()
    const { db, chainSide, spec } = this.#fixture
    const { port } = this.#api.app.server.address() as AddressInfo
    const accounts = await Promise.all(
      traders.map(async ({ wallet, account }) => ({
        ...{ address: wallet.address, private_key: wallet.privateKey, user_id: account as number },
        api_key: await createApiKey(db, account),
      })),
    )
    const { provider, shared } = chainSide
    const baseUrl = `http://127.0.0.1:${port}`
    const { marginBank, forwarder } = shared
    return audit({ db, provider, specs: [spec], marginBank, forwarder, baseUrl, accounts })
  }
}
