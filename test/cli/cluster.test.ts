/** `clearbatch cluster status` without a running cluster; `test/e2e/cluster.test.ts` runs one. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, describe, it } from 'mocha'
import { stateOf } from '../../stack/cluster/state.ts'
import { runCli } from './support/run-cli.ts'

describe('clearbatch cluster', function () {
  this.timeout(60_000)
  const folder = mkdtempSync(join(tmpdir(), 'clearbatch-cluster-cli-'))
  after(() => rmSync(folder, { recursive: true }))

  it('when the folder has no cluster, it names the command that starts one, and exits with 2', async () => {
    const { code, err } = await runCli(['cluster', 'status', '--dir', folder])
    expect([code, err]).to.deep.equal([
      2,
      `${folder} has no cluster: start one with \`npm run cb -- cluster --dir ${folder}\`\n`,
    ])
  })

  it('when services are down, it prints all, names those that are down, and exits with 5', async () => {
    stateOf(folder, { network: 'loopback', id: 250, port: 8080 })
    const { code, out, err } = await runCli(['cluster', 'status', '--dir', folder])
    expect([code, out.match(/ down$/gm)?.length]).to.deep.equal([5, 28])
    expect(err).to.match(/^28 of 28 services are down: data1 etcd, data1 postgres, /)
    const asked = await runCli(['cluster', 'status', '--dir', folder, '--json'])
    const { details } = JSON.parse(asked.err)
    expect([asked.code, asked.out, details.services.length]).to.deep.equal([5, '', 28])
    expect(details.services[0]).to.deep.equal({
      host: 'data1',
      service: 'etcd',
      address: '127.201.250.11:2379',
      state: 'down',
      role: '',
    })
  })

  it('when the state is one of another network, a start names what can be done', () => {
    expect(() => stateOf(folder, { network: 'namespaces', id: 250, port: 8080 })).to.throw(
      /is one of a cluster on loopback, not on namespaces: delete it with --fresh, or choose another --dir/,
    )
  })
})
