/** Network namespaces of a cluster, where the kernel allows them. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { bridgeOf, HOSTS, type Layout, namespaceOf } from '../../../stack/cluster/layout.ts'
import { createNetwork, freeIds, startJanitor } from '../../../stack/cluster/network.ts'
import { skipBecause } from '../../e2e/support/guide.ts'
import { waitFor } from '../../support/patience.ts'

const NETWORK = JSON.stringify(resolve('stack/cluster/network.ts'))

/** Not the first free one, which a cluster of another test takes. */
const layoutHere = async (): Promise<Layout> => ({
  network: 'namespaces',
  id: (await freeIds()).at(-1) as number,
  port: 8080,
})

const namespacesOf = (layout: Layout): string[] =>
  HOSTS.map((host) => namespaceOf(layout, host)).filter((name) => existsSync(`/run/netns/${name}`))

const hasBridge = (layout: Layout): boolean =>
  execFileSync('ip', ['-o', 'link'], { encoding: 'utf8' }).includes(`${bridgeOf(layout)}:`)

describe('stack/cluster/network, in the kernel', function () {
  this.timeout(60_000)

  it('when the network is created, a host reaches another one, and the janitor removes all of it', async function () {
    const layout = await layoutHere()
    const problem = await createNetwork(layout)
    if (problem !== null) return skipBecause(this, `network namespaces: ${problem}`)
    const remove = startJanitor(layout, [])
    expect(namespacesOf(layout)).to.have.length(HOSTS.length)
    const route = [
      'netns',
      'exec',
      namespaceOf(layout, 'app1'),
      'ip',
      'route',
      'get',
      `10.201.${layout.id}.11`,
    ]
    expect(execFileSync('ip', route, { encoding: 'utf8' })).to.include('dev eth0')
    expect(await freeIds()).not.to.include(layout.id)
    await remove()
    expect([namespacesOf(layout), hasBridge(layout)]).to.deep.equal([[], false])
  })

  it('when the process of the cluster is killed, the janitor removes its network', async function () {
    const layout = await layoutHere()
    const program = `
      import { createNetwork, startJanitor } from ${NETWORK}
      const layout = ${JSON.stringify(layout)}
      const problem = await createNetwork(layout)
      if (problem === null) startJanitor(layout, [])
      console.log(problem ?? 'created')
      setInterval(() => {}, 1000)`
    const child = spawn(process.execPath, ['--input-type=module', '-e', program])
    const [line] = (await once(child.stdout, 'data')) as [Buffer]
    child.kill('SIGKILL')
    await once(child, 'exit')
    if (!line.toString().includes('created')) return skipBecause(this, `network namespaces: ${line}`)
    await waitFor(
      async () => namespacesOf(layout).length + Number(hasBridge(layout)),
      (left) => left === 0,
    )
  })
})
