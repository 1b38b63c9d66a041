"""A headless Chromium, driven over the DevTools protocol through a pipe: no port, no other package.

    with Browser() as browser:
        page = browser.open('/tmp/report.html')
        page.value('document.title')
"""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

PROGRAM = shutil.which('chromium') or shutil.which('chromium-browser') or shutil.which('google-chrome')
FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
         '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage',
         '--remote-debugging-pipe', '--remote-allow-origins=*']
PATIENCE_S = 60


class Browser:
    def __enter__(self):
        self.profile = tempfile.mkdtemp(prefix='herdsim-chromium-')
        commands_read, self.commands = os.pipe()
        self.answers, answers_write = os.pipe()

        def place_pipes():  # Chromium reads descriptor 3 and writes 4
            os.dup2(commands_read, 63)
            os.dup2(answers_write, 64)
            os.dup2(63, 3)
            os.dup2(64, 4)

        self.process = subprocess.Popen(
            [PROGRAM, *FLAGS, f'--user-data-dir={self.profile}', 'about:blank'], preexec_fn=place_pipes,
            close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands_read)
        os.close(answers_write)
        self.unread = b''
        self.next_id = 0
        self.events = []
        return self

    def __exit__(self, *_):
        try:
            self.call('Browser.close')
        except (RuntimeError, OSError):
            pass
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, session=None, **parameters):
        self.next_id += 1
        message = {'id': self.next_id, 'method': method, 'params': parameters}
        if session:
            message['sessionId'] = session
        os.write(self.commands, json.dumps(message).encode() + b'\0')
        while True:
            answer = self.read()
            if answer.get('id') == self.next_id:
                if 'error' in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer['result']
            self.events.append(answer)

    def read(self):
        while b'\0' not in self.unread:
            chunk = os.read(self.answers, 1 << 20)
            if not chunk:
                raise RuntimeError('the browser has ended')
            self.unread += chunk
        message, self.unread = self.unread.split(b'\0', 1)
        return json.loads(message)

    def open(self, path, width=1200, height=900, dark=False):
        return Page(self, path, width, height, dark)


class Page:
    """A page that has said that it is ready, with what it asked for and what went wrong until now."""

    def __init__(self, browser, path, width, height, dark):
        self.browser = browser
        target = browser.call('Target.createTarget', url='about:blank')['targetId']
        self.session = browser.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.call(f'{domain}.enable')
        self.size(width, height)
        self.media(dark=dark)
        self.url = 'file://' + os.path.abspath(path)
        began = time.monotonic()
        self.call('Page.navigate', url=self.url)
        while not self.value('document.documentElement?.dataset.ready ?? ""'):
            if time.monotonic() - began > PATIENCE_S:
                raise RuntimeError(f'{path} is not ready after {PATIENCE_S} s: {self.faults()}')
            time.sleep(0.02)
        self.opened_in_s = time.monotonic() - began
        while not self.value('document.documentElement.dataset.drawn ?? document.documentElement.dataset.faults ?? ""'):
            if time.monotonic() - began > PATIENCE_S:
                raise RuntimeError(f'{path} has charts that are not drawn after {PATIENCE_S} s: {self.faults()}')
            time.sleep(0.02)
        self.drawn_in_s = time.monotonic() - began

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def value(self, expression):
        result = self.call('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in result:
            raise RuntimeError(json.dumps(result['exceptionDetails'])[:500])
        return result['result'].get('value')

    def size(self, width, height):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)

    def settle(self):
        """Until what was asked for is drawn: a page in the background draws nothing."""
        self.call('Page.bringToFront')
        self.value('new Promise(done => requestAnimationFrame(() => setTimeout(done, 100)))')

    def press(self, key, code, number, modifiers=0):
        for kind in ('keyDown', 'keyUp'):
            self.call('Input.dispatchKeyEvent', type=kind, key=key, code=code, windowsVirtualKeyCode=number,
                      modifiers=modifiers, **({'text': '\r'} if key == 'Enter' and kind == 'keyDown' else {}))

    def media(self, dark=False, kind=''):
        self.call('Emulation.setEmulatedMedia', media=kind,
                  features=[{'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}])

    def faults(self):
        """Errors of the console and of the log, exceptions, and everything fetched but the page."""
        self.value('1')
        found = []
        for event in self.browser.events:
            if event.get('sessionId') != self.session:
                continue
            what, details = event.get('method'), event.get('params', {})
            if what == 'Runtime.exceptionThrown':
                found.append(json.dumps(details['exceptionDetails'])[:800])
            elif what == 'Runtime.consoleAPICalled' and details['type'] in ('error', 'warning', 'assert'):
                found.append(json.dumps(details['args'])[:800])
            elif what == 'Log.entryAdded' and details['entry']['level'] in ('error', 'warning'):
                found.append(details['entry']['text'])
            elif what == 'Network.requestWillBeSent' and details['request']['url'] != self.url \
                    and not details['request']['url'].startswith(('data:', 'blob:')):
                found.append('fetched ' + details['request']['url'])
        return found

    def screenshot(self, path, whole=True):
        with open(path, 'wb') as file:
            file.write(base64.b64decode(self.call('Page.captureScreenshot', captureBeyondViewport=whole)['data']))

    def pdf(self, path):
        with open(path, 'wb') as file:
            file.write(base64.b64decode(self.call('Page.printToPDF', printBackground=True, preferCSSPageSize=True)['data']))
