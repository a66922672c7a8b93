// Package secure has the certificates of a volume's nodes, and iWARP over TLS between them. A volume's authority comes
// from a secret that all its nodes are made with, so each node makes a certificate for itself.
package secure

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// Secret is that of a volume; whoever has it can make nodes and operators of the volume.
type Secret [ed25519.SeedSize]byte

// NewSecret draws one.
func NewSecret() (s Secret) {
	_, _ = rand.Read(s[:]) // it never fails
	return s
}

// begin and end are when certificates are valid: a node whose clock is wrong must not be shut out of its volume.
var (
	begin = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	end   = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
)

// authority is the certificate of the authority that a secret stands for. It is the same wherever it is made.
func (s Secret) authority(volume string) (*x509.Certificate, ed25519.PrivateKey, error) {
	key := ed25519.NewKeyFromSeed(s[:])
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "volume " + volume}, NotBefore: begin, NotAfter: end,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	cert, err = x509.ParseCertificate(der)
	return cert, key, err
}

// Issue makes a certificate of a volume for somebody.
func (s Secret) Issue(volume, name string) (*Credentials, error) {
	ca, caKey, err := s.authority(volume)
	if err != nil {
		return nil, err
	}
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name + " of volume " + volume}, NotBefore: begin, NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, ca, public, caKey)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return parse(pemOf("CERTIFICATE", der), pemOf("PRIVATE KEY", private), pemOf("CERTIFICATE", ca.Raw))
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// Credentials are a certificate, and the authorities of those that are trusted.
type Credentials struct {
	own           tls.Certificate
	roots         *x509.CertPool
	issuers       []string // the names of roots
	cert, key, ca []byte   // as PEM
}

// The files of Save and of an option each.
const (
	CertFile = "cert.pem"
	KeyFile  = "key.pem"
	CAFile   = "ca.pem"
)

// Save writes credentials to files in a directory, which it makes. They are there for good; whoever calls it makes the
// directory's name stable.
func (c *Credentials) Save(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, b := range map[string][]byte{CertFile: c.cert, KeyFile: c.key, CAFile: c.ca} {
		if err := WriteFile(filepath.Join(dir, name), b); err != nil {
			return err
		}
	}
	return SyncDir(dir)
}

// WriteFile writes a file that its owner alone may read, and waits for the disk. SyncDir makes its name stable.
func WriteFile(name string, b []byte) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

// SyncDir makes the names of a directory's files stable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// LoadDir is what Save has written.
func LoadDir(dir string) (*Credentials, error) {
	return Load(filepath.Join(dir, CertFile), filepath.Join(dir, KeyFile), filepath.Join(dir, CAFile))
}

// Load reads credentials from files of PEM. All that an authority of the third file has certified is trusted.
func Load(certFile, keyFile, caFile string) (*Credentials, error) {
	var all [3][]byte
	for i, name := range []string{certFile, keyFile, caFile} {
		var err error
		if all[i], err = os.ReadFile(name); err != nil {
			return nil, err
		}
	}
	c, err := parse(all[0], all[1], all[2])
	if err != nil {
		return nil, fmt.Errorf("%s, %s, %s: %w", certFile, keyFile, caFile, err)
	}
	return c, nil
}

func parse(cert, key, ca []byte) (c *Credentials, err error) {
	c = &Credentials{roots: x509.NewCertPool(), cert: cert, key: key, ca: ca}
	if c.own, err = tls.X509KeyPair(cert, key); err != nil {
		return nil, err
	}
	for rest := ca; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		root, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		c.roots.AddCert(root)
		c.issuers = append(c.issuers, root.Subject.CommonName)
	}
	if len(c.issuers) == 0 {
		return nil, errors.New("no certificate of an authority")
	}
	if err := c.verify([]*x509.Certificate{c.own.Leaf}); err != nil {
		return nil, fmt.Errorf("others would refuse this: %w", err)
	}
	return c, nil
}
