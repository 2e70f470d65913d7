/** A Prometheus server that scrapes the processes of an exchange and evaluates `docs/operate/alerts.yml`. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startChild } from '../../../stack/child.ts'
import { freePort } from '../../../stack/ports.ts'

const ALERTS = 'docs/operate/alerts.yml'
/** In place of the durations of the rules: a drill shows that the expression holds, not that time passes. */
export const SHORT_FOR = '2s'

export interface Target {
  readonly job: string
  /** Base URL of its internal listener. */
  readonly url: string
}

export interface Alert {
  readonly name: string
  readonly value: string
}

export interface Prometheus {
  /** Alerts that fire now. */
  firing(): Promise<readonly Alert[]>
  stop(): Promise<void>
}

interface Rule {
  readonly expr: string
  readonly for: string
}

/** The expression and the duration of the rule, as the file states them. */
export function ruleOf(alert: string): Rule {
  const rule = new RegExp(`alert: ${alert}\\n +expr: '(.*)'\\n +for: (\\w+)`).exec(
    readFileSync(ALERTS, 'utf8'),
  )
  if (rule === null) throw new Error(`${ALERTS} has no alert ${alert}`)
  return { expr: rule[1] as string, for: rule[2] as string }
}

function configurationOf(targets: readonly Target[], rules: string): string {
  const jobs = targets.map(({ job, url }, at) => {
    const { protocol, host } = new URL(url)
    return {
      job_name: `${job}-${at}`,
      scheme: protocol.replace(':', ''),
      tls_config: { insecure_skip_verify: true },
      static_configs: [{ targets: [host], labels: { job } }],
    }
  })
  // YAML contains JSON.
  return JSON.stringify({
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: [rules],
    scrape_configs: jobs,
  })
}

/** `dir`: an empty folder for its files. */
export async function startPrometheus(dir: string, targets: readonly Target[]): Promise<Prometheus> {
  const [rules, configuration] = [join(dir, 'alerts.yml'), join(dir, 'prometheus.yml')]
  writeFileSync(rules, readFileSync(ALERTS, 'utf8').replaceAll(/for: \w+/g, `for: ${SHORT_FOR}`))
  writeFileSync(configuration, configurationOf(targets, rules))
  const address = `127.0.0.1:${await freePort()}`
  const get = (path: string): Promise<Response> =>
    fetch(`http://${address}${path}`, { signal: AbortSignal.timeout(5_000) })
  const server = await startChild({
    command: 'prometheus',
    args: [
      `--config.file=${configuration}`,
      `--storage.tsdb.path=${join(dir, 'data')}`,
      `--web.listen-address=${address}`,
    ],
    logFile: join(dir, 'prometheus.log'),
    stopSignal: 'TERM',
    ready: async () => (await get('/-/ready')).ok,
  })
  return {
    async firing() {
      const { data } = (await (await get('/api/v1/alerts')).json()) as {
        data: { alerts: { labels: { alertname: string }; state: string; value: string }[] }
      }
      return data.alerts
        .filter(({ state }) => state === 'firing')
        .map(({ labels, value }) => ({ name: labels.alertname, value }))
    },
    stop: () => server.stop(),
  }
}
