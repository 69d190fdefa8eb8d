#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# Answers what a guest asks the host with tests/vm/ask: a command for QEMU, or for the card's process. run.sh starts and
# ends it.
# usage: host.py OUT [CARD]      OUT: the directory that the guest shares, with QEMU's pipes qmp.in and qmp.out
#                                CARD: directory of the card's process (tests/card/card.c)
"""Answers requests of a guest: each is a file OUT/ask/N, its answer is OUT/ask/N.answer."""

import glob
import json
import os
import socket
import sys
import time


class Qemu:
    """QEMU's monitor protocol, over a pair of pipes."""

    def __init__(self, out):
        self.commands = open(out + '/qmp.in', 'w', encoding='utf-8')
        self.answers = open(out + '/qmp.out', encoding='utf-8')
        self.events = []
        self.answers.readline()
        self.execute({'execute': 'qmp_capabilities'})

    def execute(self, command):
        """Returns QEMU's answer, which has the member "return" or "error". Keeps the events that come before it."""
        self.commands.write(json.dumps(command) + '\n')
        self.commands.flush()
        while True:
            answer = json.loads(self.answers.readline())
            if 'event' not in answer:
                return answer
            self.events.append(answer['event'])

    def monitor(self, line):
        """Runs a command of the human monitor, which reports an error only in its output."""
        answer = self.execute({'execute': 'human-monitor-command', 'arguments': {'command-line': line}})
        return answer.get('return', str(answer)).replace('\r', '').strip()


def ask_card(directory, text):
    """Sends a command to the card's process, and returns its answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
        client.bind('')
        client.settimeout(300)
        client.sendto(text.encode(), directory + '/control')
        return client.recv(1000).decode()


def answer_to(qemu, card, request):
    """Returns the exit status of tests/vm/ask and the text that it prints."""
    verb, _, rest = request.strip().partition(' ')
    if verb == 'qmp':
        answer = qemu.execute(json.loads(rest))
        return 'error' in answer, json.dumps(answer.get('error', answer.get('return')))
    if verb == 'hmp':
        text = qemu.monitor(rest)
        return text.startswith(('Error', 'unknown command', 'invalid')), text
    if verb == 'card' and card:
        text = ask_card(card, rest)
        return text.startswith('error'), text
    return 2, f"the host knows no '{verb}'"


def main():
    """Serves until run.sh ends this process."""
    out = sys.argv[1]
    card = sys.argv[2] if len(sys.argv) > 2 else None
    qemu = Qemu(out)
    while True:
        for path in glob.glob(out + '/ask/*.request'):
            with open(path, encoding='utf-8') as file:
                request = file.read()
            os.unlink(path)
            try:
                status, text = answer_to(qemu, card, request)
            except (OSError, ValueError) as error:
                status, text = 2, repr(error)
            print(f'{request.strip()} -> {text}', flush=True)
            answer = path.removesuffix('request') + 'answer'
            with open(answer + '.new', 'w', encoding='utf-8') as file:
                file.write(f'{int(status)}\n{text}\n')
            os.rename(answer + '.new', answer)
        time.sleep(0.02)


main()
