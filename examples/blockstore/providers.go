package main

import _ "godat/hw/ibv" // --provider may name it, beside the providers that every program has
