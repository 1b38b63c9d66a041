"""A run database with something in every table, made from the schema itself."""
import math
import sqlite3

APPLICATION_ID = 0x48657264
TERMS = ('compute', 'memory_bound', 'exposed_tp', 'exposed_cp', 'exposed_ep', 'exposed_pp', 'exposed_dp', 'bubble',
         'optimizer', 'straggler', 'other')
SHARES = (0.58, 0.07, 0.14, 0, 0, 0.01, 0.02, 0.14, 0.001, 0.02, 0.019)
RUN_TERMS = {'training': 0.9, 'checkpoint_stall': 0.004, 'lost_work': 0.03, 'detection': 0.02, 'diagnosis': 0.016,
             'reschedule': 0.01, 'init': 0.012, 'checkpoint_load': 0.004, 'warmup': 0.003, 'slowdown': 0.001}
STEP_S = 6.4
DAYS = 54


class Sample:
    def __init__(self, path, schema):
        self.db = sqlite3.connect(path)
        with open(schema, encoding='utf-8') as file:
            self.db.executescript(file.read())
        self.db.execute(f'PRAGMA application_id = {APPLICATION_ID}')
        self.db.execute('PRAGMA user_version = 1')

    def close(self):
        self.db.commit()
        self.db.close()

    def insert(self, table, **values):
        names = ', '.join(values)
        marks = ', '.join('?' * len(values))
        return self.db.execute(f'INSERT INTO {table}({names}) VALUES ({marks})', tuple(values.values())).lastrowid

    def run(self, kind='step', scenario='sample-16', gpus=16, mfu=0.4, sweep=None, point=None, **more):
        return self.insert('runs', **{**dict(
            kind=kind, scenario=scenario, gpus=gpus, command=f'herdsim {kind} {scenario}', effective_spec='', seed=1,
            version='0', profile='h100', profile_provenance='measured: a file', result_fingerprint='0123456789abcdef',
            recorded_at='2026-01-01T00:00:00Z', sweep_id=sweep, sweep_point=point, step_time_s=STEP_S,
            tokens_per_step=1 << 24, tokens_per_second_per_gpu=160.0, model_tflops_per_gpu=989.4 * mfu, mfu=mfu,
            mfu_full_attention=mfu + 0.02, peak_tflops=989.4, dtype='bf16', bubble_fraction=0.14,
            peak_memory_bytes=70_700_000_000, peak_memory_stage=1, peak_memory_moment='backward of micro-batch 0',
            memory_capacity_bytes=85_520_000_000, fits=1, warnings='first warning\nsecond warning'), **more})

    def metrics(self, run, prefix, values, unit=''):
        for name, value in values.items():
            self.insert('metrics', run_id=run, name=prefix + name, value=value, unit=unit)

    def weeks(self, run, share):
        self.metrics(run, 'run.', {
            'effective_training_time': share, 'effective_training_time_p05': share - 0.02,
            'effective_training_time_p95': share + 0.01, 'horizon_s': DAYS * 86400, 'unexpected_interruptions': 420.0,
            'planned_interruptions': 47.0, 'mean_time_between_interruptions_s': 9936.0})
        self.metrics(run, 'run.time_account.', {t: s * DAYS * 86400 for t, s in RUN_TERMS.items()}, 's')

    def step_details(self, run, stages=4, batches=8, chunks=2):
        self.metrics(run, 'time_account.', {t: s * STEP_S for t, s in zip(TERMS, SHARES)}, 's')
        for stage in range(stages):
            for term, share in zip(TERMS, SHARES):
                self.insert('rank_time', run_id=run, rank_class=stage, stage=stage, first_rank=8 * stage, ranks=4,
                            term=term, seconds=share * STEP_S)
        width = int(STEP_S * 1e9 / (2.2 * batches * chunks + 2 * stages))
        for stage in range(stages):
            at = stage * width
            for k, phase in enumerate(['forward'] * batches * chunks + ['backward'] * batches * chunks):
                batch = k % (batches * chunks)
                self.insert('passes', run_id=run, stage=stage, rank=8 * stage, begin_ns=at, duration_ns=width,
                            phase=phase, micro_batch=batch % batches, chunk=batch // batches,
                            memory_bytes=int(4e10 + 1e9 * min(k, 2 * batches * chunks - k) * (1 + 0.1 * stage)))
                at += width + (2 * (stages - stage) * width if k == batches * chunks - 1 else 0)

    def links(self, run):
        for link in range(640):
            kind = ('nvlink', 'nic', 'leaf uplink', 'spine uplink')[link % 4]
            use = (0.02, 0.33, 0.61, 0.18)[link % 4] * (1 + 0.4 * math.sin(link))
            self.insert('links', run_id=run, link=link, kind=kind, name=f'{kind} {link}', links=1,
                        capacity_bytes_per_second=50_000_000_000, carried_bytes=int(use * STEP_S * 5e10), use=use,
                        transfers='DP all-gather 100 %')

    def failures(self, run):
        classes = ('faulty_gpu', 'hbm3', 'software', 'network', 'maintenance')
        for i in range(200):
            self.insert('failures', run_id=run, replica=0, at_s=i * DAYS * 432.0,
                        failure_class=classes[(i * i + i // 3) % 5], component=f'node {i}',
                        planned=int((i * i + i // 3) % 5 == 4), down_s=300.0 + 60 * (i % 17), lost_work_s=150.0)

    def sweep(self, path, values, scenario='sample-16', weeks=False, suffix=''):
        sweep = self.insert('sweeps', name=f'{scenario}#{"0" * 16}; axes {path}{suffix}')
        for i, value in enumerate(values):
            run = self.run(kind='run' if weeks else 'step', scenario=scenario, mfu=0.38 + 0.02 * i / len(values),
                           sweep=sweep, point=f'{path}={value}')
            if weeks:
                self.weeks(run, 0.95 - 0.1 * i / len(values))
        return sweep

    def tornado(self, run):
        ends = {'software.tp_overlap': (0, 0.023), 'software.clock_factor': (-0.006, 0.006), 'software.gpu_speed_sigma': (0.008, -0.011),
                'software.optimizer_bytes': (0, 0)}
        for name, (low, high) in ends.items():
            for metric, value in (('mfu', 0.4), ('tokens_per_second', 2.5e6)):
                self.insert('tornado', run_id=run, input=name, low='low', high='high', evidence='assumed', source='a range',
                            metric=metric, value=value, value_low=value * (1 + low / 0.4), value_high=value * (1 + high / 0.4))

    def comparisons(self, count=20):
        for i in range(count):
            self.insert('comparisons', suite='runs.csv' if i % 2 else 'other.csv', name=f'row {i}', quantity='step_time', unit='s',
                        predicted=(1 + i) * (1 + 0.06 * math.sin(3 * i)), published=1.0 + i, source='a table', version='0')
        self.insert('comparisons', suite='steps', name='sample-16', quantity='mfu', unit='%', predicted=40.8,
                    published=41.0, allowed=1.5, source='arXiv', version='0')


def full(path, schema, scenario='sample-16'):
    """Every chart has its data."""
    sample = Sample(path, schema)
    step = sample.run(scenario=scenario)
    sample.step_details(step)
    sample.links(step)
    sample.tornado(step)
    sample.run(scenario=scenario, gpus=32, mfu=0.37)
    weeks = sample.run(kind='run', scenario=scenario)
    sample.weeks(weeks, 0.9)
    sample.failures(weeks)
    sample.sweep('reliability.rate_scale', (0.5, 1, 2), scenario, weeks=True)
    sample.sweep('software.clock_factor', (0.94, 1), scenario)
    sample.sweep('software.attention_kernel', ('"fa2"', '"cudnn9"'), scenario)
    sample.comparisons()
    sample.close()


def large_sweep(path, schema, points=1000):
    sample = Sample(path, schema)
    sweep = sample.insert('sweeps', name=f'sample-16#{"0" * 16}; axes parallel.tp seed')
    for i in range(points):
        run = sample.run(kind='run', mfu=0.3 + 0.1 * (i % 25) / 25, sweep=sweep,
                         point=f'cluster.scale={1 + i % 25} parallel.tp={2 ** (i // 25 % 8)} seed={i // 200}')
        sample.weeks(run, 0.9 + 0.05 * math.sin(i))
    sample.close()
