/** The relayer lanes with jobs in the queue of the keepers, which is in Redis if the exchange has one. */
import { Queue } from 'bullmq'
import { sql } from 'kysely'
import type { Db } from '../../../db/client.ts'
import { openRedis } from '../../../service/redis.ts'

const STATES = ['active', 'waiting', 'delayed', 'completed', 'failed'] as const

async function namesInRedis(url: string): Promise<readonly string[]> {
  const connection = openRedis(url, { maxRetriesPerRequest: null })
  const queue = new Queue('lanes', { connection, prefix: 'keeper' })
  const jobs = await queue.getJobs([...STATES])
  await queue.close()
  connection.disconnect()
  return jobs.map(({ name }) => name)
}

export async function lanesWithJobs(db: Db): Promise<readonly string[]> {
  const { REDIS_URL: url } = process.env
  if (url) return namesInRedis(url)
  const { rows } = await sql<{ name: string }>`select name from bullmq.job where queue = 'lanes'`.execute(db)
  return rows.map(({ name }) => name)
}
